"""The six agents start inside, with their whole installation read-only and without a network."""
import json
import os

import peers
import inside


class Versions(inside.Case):
    def setUp(self):
        super().setUp()
        peers.offer(self.place)

    def answers(self, name):
        self.assertTrue(os.access(os.path.join(peers.PROGRAMS, name), os.X_OK), "run scripts/install-agents")
        flags, command = peers.contained(name, "--version")
        done = self.place.run(*command, flags=flags)
        said = (done.stdout + done.stderr).decode(errors="backslashreplace")
        self.assertEqual(done.returncode, 0, said)
        self.assertIn(peers.version(name), said)
        self.assertEqual(os.listdir(self.place.home), [])

    def test_claude_tells_its_version(self):
        self.answers("claude")

    def test_codex_tells_its_version(self):
        self.answers("codex")

    def test_copilot_tells_its_version(self):
        self.answers("copilot")

    def test_gemini_tells_its_version(self):
        self.answers("gemini")

    def test_opencode_tells_its_version(self):
        self.answers("opencode")

    def test_pi_tells_its_version(self):
        self.answers("pi")

    def test_without_its_installation_an_agent_is_not_found(self):
        done = self.place.run(os.path.join(peers.PROGRAMS, "claude"), "--version")
        self.assertEqual(done.returncode, 127, done)


class Pins(inside.Case):
    def test_every_package_has_a_digest_and_no_address(self):
        with open(os.path.join(peers.HERE, "pins", "package-lock.json"), encoding="utf-8") as file:
            packages = json.load(file)["packages"]
        names = [place for place in packages if place]
        self.assertGreaterEqual(len(names), len(peers.PACKAGES))
        for place in names:
            self.assertRegex(packages[place].get("integrity", ""), r"^sha512-[A-Za-z0-9+/]{86}==$", place)
            self.assertNotIn("resolved", packages[place], place)


if __name__ == "__main__":
    inside.main()
