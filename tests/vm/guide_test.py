"""What docs/managed-sessions.md shows of running a session, command by command, with the real service manager."""
import os
import pwd
import shutil
import subprocess
import sys
import unittest

import inside

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../docs"))
import docs  # noqa: E402

PAGE = os.path.join(HERE, "../../docs/managed-sessions.md")
BUILT = os.path.dirname(inside.GLOVE)
PROGRAMS = ("bin/glove", "bin/gloved", "libexec/glove/glove-control", "libexec/glove/glove-image",
            "libexec/glove/glove-egress")


class Guide(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        me = pwd.getpwuid(os.getuid())
        self.home, self.runtime = me.pw_dir, f"/run/user/{me.pw_uid}"
        self.made = [f"{self.home}/{name}" for name in (
            "programs", "project", "policy.json", "plan.template", "plan.json", ".config/glove", ".local/state/glove",
            ".config/systemd/user/sage-gloved.service")]
        for path in self.made:
            self.assertFalse(os.path.exists(path), f"{path} is not this test's")
        self.addCleanup(self.clean)
        for name in PROGRAMS:  # as cmake --install lays them out
            path = f"{self.home}/programs/{name}"
            os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
            shutil.copy(f"{BUILT}/{os.path.basename(name)}", path)
            os.chmod(path, 0o755)

    def clean(self):
        for words in (("stop", "sage-gloved.service"), ("reset-failed", "sage-gloved.service")):
            subprocess.run(["systemctl", "--user", *words], env=self.environment(), check=False, capture_output=True,
                           timeout=inside.PATIENCE)
        for path in self.made:
            (shutil.rmtree if os.path.isdir(path) else os.unlink)(path) if os.path.lexists(path) else None
        subprocess.run(["systemctl", "--user", "daemon-reload"], env=self.environment(), check=False,
                       timeout=inside.PATIENCE)

    def environment(self):
        return docs.environment(self.home, f"{self.home}/programs/bin") | {"XDG_RUNTIME_DIR": self.runtime}

    def test_the_commands_of_the_page(self):
        with open(PAGE, encoding="utf-8") as file:
            text = file.read()
        shown = list(docs.commands(text, "guest"))
        self.assertGreater(len(shown), 10)
        results = docs.transcript_at(self.home, self.environment(), shown, docs.files_of(text), inside.PATIENCE)
        self.assertEqual(list(docs.differences(shown, results)), [])


if __name__ == "__main__":
    inside.main()
