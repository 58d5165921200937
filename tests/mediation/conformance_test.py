"""The official conformance suite, with Glove between it and what it tests.

As a server Glove stands before a fixture that passes the suite alone; as a client it stands between an
official client and the suite's own servers.
"""
import os
import re
import subprocess

import inside
import mediation_case

SUITE = os.path.join(mediation_case.TOOLS, "node_modules", ".bin", "conformance")
FIXTURE = mediation_case.node(mediation_case.script("fixture.mjs"))
RELAYED = "prompts,resources,completion,logging,sampling,elicitation"
DENIED = os.path.join(mediation_case.HERE, "conformance_denied.yml")


class Server(mediation_case.Case):
    def bridged(self, command):
        """The port of a bridge to one process of the command for each session."""
        with open(self.stderr_file, "ab") as errors:
            bridge = subprocess.Popen([inside.NODE, mediation_case.script("http_bridge.mjs"), *command],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                      env=self.place.environment, cwd=self.place.workspace)
        self.addCleanup(inside.end, bridge)
        return bridge, int(bridge.stdout.readline())

    def judge(self, command, *flags):
        """(status, output) of the suite against the command."""
        bridge, port = self.bridged(command)
        done = self.place.bare(inside.NODE, SUITE, "server", "--url", f"http://localhost:{port}/mcp", *flags)
        bridge.stdin.close()
        self.assertEqual(bridge.wait(30), 0, self.stderr())
        return done.returncode, done.stdout.decode() + done.stderr.decode()

    def behind_glove(self, *flags):
        return self.serve_command("--tool-names", "bare", *flags, *self.upstream("f", *FIXTURE), "--allow", "f.*")

    def test_the_fixture_passes_alone(self):
        status, out = self.judge(FIXTURE)
        self.assertEqual(status, 0, out)
        self.assertIn("Total: 40 passed, 0 failed", out)

    def test_with_everything_relayed_everything_passes(self):
        status, out = self.judge(self.behind_glove("--relay", RELAYED))
        self.assertEqual(status, 0, out + self.stderr())
        self.assertIn("Total: 40 passed, 0 failed", out)

    def test_with_the_defaults_what_is_not_relayed_fails_and_nothing_else(self):
        # The suite fails as well when something on the list passes.
        status, out = self.judge(self.behind_glove(), "--expected-failures", DENIED)
        self.assertEqual(status, 0, out + self.stderr())
        self.assertRegex(out, r"Total: \d+ passed, [1-9]\d* failed")


class Client(mediation_case.Case):
    def judge(self, scenario, command):
        words = [*mediation_case.node(mediation_case.script("conformance_client.mjs")), *command]
        self.assertFalse([word for word in words if " " in word], words)
        # The suite splits the command at spaces and knows no quotes.
        done = self.place.bare(inside.NODE, SUITE, "client", "--command", " ".join(words), "--scenario", scenario)
        out = done.stdout.decode() + done.stderr.decode()
        self.assertEqual(done.returncode, 0, out + self.stderr())
        return re.search(r"Passed: (\d+)/(\d+)", out).groups()

    def both(self, scenario, checks):
        there = mediation_case.node(mediation_case.script("stdio_to_http.mjs"), "{url}")
        for command in (there, self.serve_command("--tool-names", "bare", "--relay", "elicitation",
                                                  *self.upstream("c", *there), "--allow", "c.*")):
            with self.subTest(command[0]):
                self.assertEqual(self.judge(scenario, command), (str(checks), str(checks)))

    def test_initialize(self):
        self.both("initialize", 1)

    def test_calls(self):
        self.both("tools_call", 1)

    def test_forms_with_defaults(self):
        self.both("elicitation-sep1034-client-defaults", 5)


if __name__ == "__main__":
    inside.main()
