"""Whole runs of the agents that people use, each with one tool of a server that it may call.

The model is a script: the agent calls the tool, calls it with an argument that no rule allows, and then
asks by its shell, past its own list of tools, for a tool that it may not have. The agents are the real
ones. What they told their model, what reached the server and the record have to agree.
"""
import json
import os
import shlex
import sys

import mediation_case

sys.path[:0] = [os.path.join(mediation_case.PROJECT, "tests", folder) for folder in ("egress", "peers")]
import egress_case  # pylint: disable=wrong-import-position
import inside  # pylint: disable=wrong-import-position
import peers  # pylint: disable=wrong-import-position
import scripted_model  # pylint: disable=wrong-import-position

BRIDGE = "/run/glove/bin/glove-mcp"


def by_shell(tool, **arguments):
    """A command that speaks with the servers itself."""
    lines = [{"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {},
                                                          "clientInfo": {"name": "a-shell", "version": "1"}}},
             {"method": "notifications/initialized"},
             {"id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}]
    text = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines)
    return f"printf %s {shlex.quote(text)} | {BRIDGE}"


# The largest of the agents works for ten seconds before it says a word; the machine may be shared.
PATIENCE = 3 * inside.PATIENCE


class Runs(egress_case.Case, mediation_case.Case):
    # What an agent needs beyond its profile so that it calls tools without asking.
    MORE = {"claude": ["--allowedTools", "mcp__glove"]}
    SETTINGS = {"claude": {"ENABLE_TOOL_SEARCH": "false"}}

    def setUp(self):
        super().setUp()
        self.place.verb = "run"
        peers.offer(self.place)
        self.place.bare("git", "init", "-q")

    def run_agent(self, name, script):
        # An agent may speak to its model before it has heard of its tools.
        listed = {"shell": "true", "after": lambda: inside.wait_until(lambda: self.records("list_tools"), 60)}
        model = scripted_model.ScriptedModel([listed, *script, {"text": "that was all"}])
        self.addCleanup(model.server_close)
        self.addCleanup(model.shutdown)
        arguments, environment, files = peers.DRIVEN[name](f"http://localhost:{model.port}")
        for file, text in files.items():
            self.place.put(file, text)
        flags, command = peers.contained(name, *arguments, *self.MORE.get(name, []))
        settings = {**environment, **self.SETTINGS.get(name, {})}
        told = [word for setting in settings.items() for word in ("--env", "=".join(setting))]
        rules = [*self.upstream("a", *self.actor()), "--allow", "a.act", "--allow-arg", "a.act:words=good-"]
        done = self.run_with([f"localhost:{model.port}"], *command, extra=[*flags, *told, *rules], timeout=PATIENCE)
        self.assertEqual(done.status, 0, done)
        self.assertEqual(len(model.told), 1 + len(script), done)
        return model

    def drives(self, name):
        model = self.run_agent(name, [{"server": "act", "input": {"words": "good-words"}},
                                      {"server": "act", "input": {"words": "bad-words"}},
                                      {"shell": by_shell("a__other", words="good-words")}])
        allowed, argument, tool = model.told[1:]
        self.assertIn("good-words", allowed)
        self.assertNotIn("denied", allowed)
        self.assertIn("policy denied", argument)
        self.assertIn("policy denied", tool)
        self.assertIn('"isError":true', tool.replace(" ", "").replace('\\"', '"'))
        offered = [each for each in model.offered if "a__" in each]
        self.assertEqual(len(offered), 1, model.offered)
        self.assertEqual(self.arrived_calls(), [{"words": "good-words"}])
        self.assertEqual(self.calls_on_record(), [("a.act", "pending"), ("a.act", "ok"), ("a.act", "invalid_arguments"),
                                                  ("a.other", "invalid_arguments")])

    def test_claude_calls_what_is_allowed(self):
        self.drives("claude")

    def test_codex_calls_what_is_allowed(self):
        self.drives("codex")

    def test_copilot_calls_what_is_allowed(self):
        self.drives("copilot")

    def test_gemini_calls_what_is_allowed(self):
        self.drives("gemini")

    def test_opencode_calls_what_is_allowed(self):
        self.drives("opencode")

    def test_claude_finds_a_tool_that_it_looks_for(self):
        """As its users have it: tools of servers are found by a search."""
        self.SETTINGS = {}
        model = self.run_agent("claude", [{"tool": "ToolSearch", "input": {"query": "select:mcp__glove__a__act"}},
                                          {"tool": "mcp__glove__a__act", "input": {"words": "good-words"}}])
        self.assertIn("good-words", model.told[2])
        self.assertEqual(self.arrived_calls(), [{"words": "good-words"}])


if __name__ == "__main__":
    inside.main()
