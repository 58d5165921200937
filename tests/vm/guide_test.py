"""What docs/managed-sessions.md shows of running a session, and docs/operations.md of a new key, command by command,
with the real service manager."""
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

PAGES = [os.path.join(HERE, "../../docs", name) for name in ("managed-sessions.md", "operations.md")]
BUILT = os.path.dirname(inside.GLOVE)
PROGRAMS = ("bin/glove", "bin/gloved", "libexec/glove/glove-control", "libexec/glove/glove-image",
            "libexec/glove/glove-egress")


class Guide(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        me = pwd.getpwuid(os.getuid())
        self.home, self.runtime = me.pw_dir, f"/run/user/{me.pw_uid}"
        self.made = [f"{self.home}/{name}" for name in (
            "programs", "project", "projects", "policy.json", "plan.template", "plan.json", "exposures.json",
            "changing.template", "changing.json", "receipts.json", ".config/glove", ".local/state/glove",
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

    def test_the_commands_of_the_pages(self):
        texts = []
        for page in PAGES:
            with open(page, encoding="utf-8") as file:
                texts.append(file.read())
            self.assertGreater(len(list(docs.commands(texts[-1], "guest"))), 6)
        text = "\n".join(texts)
        shown = list(docs.commands(text, "guest"))
        results = docs.transcript_at(self.home, self.environment(), shown, docs.files_of(text), inside.PATIENCE)
        self.assertEqual(list(docs.differences(shown, results)), [])


if __name__ == "__main__":
    inside.main()
