"""Official clients against official servers, with Glove between: what passes is as without it, and what
is missing is what no rule allows."""
import json
import os
import subprocess

import inside
import mediation_case

INSPECTOR = os.path.join(mediation_case.TOOLS, "node_modules", ".bin", "mcp-inspector")
EVERYTHING = mediation_case.node(mediation_case.EVERYTHING)
# What the server offers to a client that does without sampling, forms and roots.
PLAIN = {"echo", "get-annotated-message", "get-env", "get-resource-links", "get-resource-reference",
         "get-structured-content", "get-sum", "get-tiny-image", "gzip-file-as-resource", "toggle-simulated-logging",
         "toggle-subscriber-updates", "trigger-long-running-operation"}
TASK = "simulate-research-query"  # can only be called as a task


class RoundTrip(mediation_case.Case):
    def seen(self, command):
        done = self.place.bare(*mediation_case.node(mediation_case.script("round_trip.mjs")), *command)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)

    def behind_glove(self, *flags):
        return self.serve_command("--tool-names", "bare", *flags, *self.upstream("e", *EVERYTHING), "--allow", "e.*")

    def same(self, direct, seen, relayed):
        """Everything that has to be the same, is."""
        self.assertEqual(seen["results"]["echo"], direct["results"]["echo"])
        for name in ("get-annotated-message", "get-resource-links", "get-sum", "get-tiny-image"):
            self.assertEqual(seen["results"][name], direct["results"][name], name)
        self.assertIn("temperature", seen["results"]["get-structured-content"]["structuredContent"])
        offered = {tool["name"]: tool for tool in direct["tools"]}
        for tool in seen["tools"]:
            self.assertEqual(tool, offered[tool["name"]])
        # The last step and the answer race in the server itself.
        self.assertEqual([step["progress"] for step in seen["progress"]["steps"]][:3], [1, 2, 3])
        self.assertEqual(seen["progress"]["result"], direct["progress"]["result"])
        self.assertEqual(seen["aborted"]["code"], direct["aborted"]["code"])
        self.assertTrue(seen["odd"])
        self.assertTrue(seen["large"])
        self.assertEqual(seen["counts"].get("roots", 0), 0)  # never asked of the agent
        self.assertNotIn("root-of-the-agent", json.dumps(seen))
        self.assertEqual(seen["server"]["name"], "glove")
        self.assertEqual(seen["unknown"]["code"], -32602)
        for what in ("sampling", "elicitation"):
            self.assertEqual(bool(seen["counts"].get(what)), relayed, seen["counts"])

    def test_direct_and_through_glove(self):
        direct = self.seen(EVERYTHING)
        self.assertTrue(direct["odd"] and direct["large"])
        self.assertGreater(direct["counts"]["roots"], 0)
        self.assertTrue({*PLAIN, TASK} < {tool["name"] for tool in direct["tools"]})

        with self.subTest("the defaults"):
            seen = self.seen(self.behind_glove())
            self.same(direct, seen, False)
            names = {tool["name"] for tool in seen["tools"]}
            self.assertEqual(names & {*PLAIN, TASK}, PLAIN)
            self.assertFalse({name for name in names if "sampling" in name or "elicitation" in name}, names)
            self.assertIsNone(seen["resources"])
            self.assertIsNone(seen["prompts"])
            self.assertFalse({"resources", "prompts", "logging", "completions"} & set(seen["capabilities"]))

        with self.subTest("everything relayed"):
            seen = self.seen(self.behind_glove("--relay", "prompts,resources,completion,logging,sampling,elicitation"))
            self.same(direct, seen, True)
            self.assertEqual((seen["resources"], seen["prompts"]), (direct["resources"], direct["prompts"]))
            self.assertEqual(seen["level"], direct["level"])
            for name in direct["results"]:
                if "sampling" in name or "elicitation" in name:
                    self.assertIn(name, seen["results"])

    def test_the_server_has_no_secret_of_its_caller(self):
        self.place.environment["SECRET_TOKEN"] = "a-secret"
        self.place.environment["PASSED"] = "as it is"
        client = self.serve(*self.upstream("e", *EVERYTHING), "--allow", "e.get-env", "--upstream-env", "e:PASSED",
                            "--upstream-env", "e:SET=to this")
        said = client.call("e__get-env")
        found = json.loads(said["result"]["content"][0]["text"])
        self.assertNotIn("a-secret", found.values())
        self.assertEqual((found["PASSED"], found["SET"]), ("as it is", "to this"))
        self.assertEqual(found["HOME"], self.place.home)


class Inspector(mediation_case.Case):
    def inspect(self, command, *arguments):
        done = subprocess.run([inside.NODE, INSPECTOR, "--cli", *command, *arguments, "-q"],
                              env=dict(self.place.environment, MCP_STORAGE_DIR=self.place.folder("inspector")),
                              stdin=subprocess.DEVNULL, capture_output=True, check=False, cwd=self.place.workspace,
                              timeout=inside.PATIENCE)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def configured(self, *flags):
        """Options that name Glove as the server, which takes options of its own."""
        command = self.serve_command(*self.upstream("e", *EVERYTHING), *flags)
        file = self.place.path("servers.json")
        with open(file, "w", encoding="utf-8") as out:
            json.dump({"mcpServers": {"glove": {"command": command[0], "args": command[1:],
                                                "env": self.place.environment}}}, out)
        return ["--config", file, "--server", "glove"]

    def test_it_lists_and_calls_what_is_allowed(self):
        glove = self.configured("--allow", "e.echo", "--allow", "e.get-sum")
        status, out, err = self.inspect(glove, "--method", "tools/list")
        self.assertEqual(status, 0, out + err + self.stderr())
        for name in {*PLAIN, TASK}:
            self.assertEqual(f"e__{name}" in out, name in ("echo", "get-sum"), name)
        status, out, err = self.inspect(glove, "--method", "tools/call", "--tool-name", "e__echo",
                                        "--tool-arg", "message=hello")
        self.assertEqual(status, 0, out + err)
        self.assertIn("Echo: hello", out)
        status, out, err = self.inspect(glove, "--method", "tools/call", "--tool-name", "e__get-env")
        self.assertNotEqual(status, 0, out + err)
        self.assertNotIn("HOME", out)
        self.assertEqual({tool for tool, _ in self.calls_on_record()}, {"e.echo"})


class Eras(mediation_case.Case):
    """Clients and servers that speak a newer revision as well."""

    def seen(self, tool, command):
        done = self.place.bare(*mediation_case.node(mediation_case.script("modern_client.mjs")), tool, *command)
        self.assertEqual(done.returncode, 0, done.stderr.decode() + self.stderr())
        return json.loads(done.stdout)

    def test_a_newer_client_falls_back(self):
        seen = self.seen("e__echo", self.serve_command(*self.upstream("e", *EVERYTHING), "--allow", "e.echo"))
        self.assertEqual(seen["tools"], ["e__echo"])
        self.assertEqual(seen["said"]["content"], [{"type": "text", "text": "Echo: hello"}])

    def test_a_newer_server_is_spoken_to_as_before(self):
        server = mediation_case.node(mediation_case.script("modern_server.mjs"))
        seen = self.seen("m__echo", self.serve_command(*self.upstream("m", *server), "--allow", "m.echo"))
        self.assertEqual(seen["said"]["content"], [{"type": "text", "text": "hello"}])


if __name__ == "__main__":
    inside.main()
