"""What the operator has relayed beyond tools: to whom it goes, and what a rule leaves of it."""
import json
import os
import time

import mediation_case
import session

NO_METHOD = -32601
RELAYED = "resources,prompts,completion,logging"
RULES = """
[resources.a]
allow = ["demo://open/"]
[prompts.a]
allow = ["open"]
"""


class Relays(mediation_case.Case):
    def policy(self, text):
        name = self.place.path("tools.toml")
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, 0o600)
        return ["--policy", name]

    def relaying(self, *flags, relay=RELAYED):
        return self.act("--relay", relay, *flags)

    def asked(self, method):
        return [each["params"] for each in self.arrived(method)]

    def test_resources_and_prompts_pass(self):
        client = self.relaying()
        listed = client.request("resources/list")["result"]["resources"]
        self.assertEqual([each["uri"] for each in listed], ["demo://open/a", "demo://secret/b"])
        said = client.request("resources/read", {"uri": "demo://secret/b"})
        self.assertEqual(said["result"]["contents"][0]["text"], "content of demo://secret/b")
        listed = client.request("prompts/list")["result"]["prompts"]
        self.assertEqual([each["name"] for each in listed], ["open", "secret"])
        said = client.request("prompts/get", {"name": "open"})
        self.assertEqual(said["result"]["messages"][0]["content"]["text"], "open")
        said = client.request("completion/complete", {"ref": {"type": "ref/prompt", "name": "open"},
                                                      "argument": {"name": "x", "value": "y"}})
        self.assertEqual(said["result"], {"completion": {"values": ["a"]}})

    def test_rules_narrow_them(self):
        client = self.relaying(*self.policy(RULES))
        listed = client.request("resources/list")["result"]["resources"]
        self.assertEqual([each["uri"] for each in listed], ["demo://open/a"])
        self.assertIn("result", client.request("resources/read", {"uri": "demo://open/a"}))
        for uri in ("demo://secret/b", "demo://ope", "DEMO://open/a", "demo://open/../secret/b",
                    "demo://open/%2e%2e/secret", "", None, 5, ["demo://open/a"], " demo://open/a"):
            with self.subTest(uri):
                self.assertIn("error", client.request("resources/read", {"uri": uri}))
                self.assertIn("error", client.request("resources/subscribe", {"uri": uri}))
        self.assertEqual(self.asked("resources/read"), [{"uri": "demo://open/a"}])
        self.assertEqual(self.asked("resources/subscribe"), [])
        self.assertEqual([each["name"] for each in client.request("prompts/list")["result"]["prompts"]], ["open"])
        self.assertIn("result", client.request("prompts/get", {"name": "open"}))
        for name in ("secret", "Open", "open ", "", None):
            with self.subTest(name):
                self.assertIn("error", client.request("prompts/get", {"name": name}))
        self.assertEqual([each["name"] for each in self.asked("prompts/get")], ["open"])
        for ref in ({"type": "ref/prompt", "name": "secret"}, {"type": "ref/resource", "uri": "demo://secret/b"},
                    {"type": "ref/unheard-of"}, None):
            with self.subTest(ref):
                said = client.request("completion/complete", {"ref": ref, "argument": {"name": "x", "value": "y"}})
                self.assertIn("error", said)
        self.assertEqual(self.asked("completion/complete"), [])

    def test_each_is_relayed_by_its_own_word(self):
        words = {"resources": ("resources/list", "resources/read"), "prompts": ("prompts/list", "prompts/get"),
                 "completion": ("completion/complete",), "logging": ("logging/setLevel",)}
        for word in words:
            client = self.relaying(relay=word)
            for other, methods in words.items():
                for method in methods:
                    with self.subTest(f"{word}: {method}"):
                        said = client.request(method, {"uri": "demo://open/a", "name": "open", "level": "info", "ref": {
                            "type": "ref/prompt", "name": "open"}, "argument": {"name": "x", "value": "y"}})
                        refused = said.get("error", {}).get("code") == NO_METHOD
                        self.assertEqual(refused, other != word, said)
            client.close()

    def test_they_are_on_record(self):
        client = self.relaying()
        client.request("resources/read", {"uri": "demo://open/a"})
        found = [each for each in self.records("call_tool") if "demo://open/a" in json.dumps(each)]
        self.assertTrue(found)
        self.assertEqual([each["status"] for each in self.records("call_tool")], ["pending", "ok"])

    def test_logs_have_a_level_and_a_name(self):
        client = self.relaying()

        def heard(level):
            client.heard.clear()
            self.assert_words(client.call("act", do="notify", method="notifications/message",
                                          params={"level": level, "data": "d", "logger": "x"}), "told")
            return [each["params"] for each in client.heard]
        self.assertIn("result", client.request("logging/setLevel", {"level": "warning"}))
        self.assertEqual(heard("info"), [])
        told = heard("error")
        self.assertEqual(len(told), 1)
        self.assertIn("a", told[0]["logger"])
        self.assertEqual((told[0]["level"], told[0]["data"]), ("error", "d"))
        self.assertEqual(heard("no-such-level"), [])
        self.assertIn("error", client.request("logging/setLevel", {"level": "no-such-level"}))

    def test_updates_reach_who_subscribed(self):
        client = self.relaying()

        def heard(uri):
            client.heard.clear()
            self.assert_words(client.call("act", do="notify", method="notifications/resources/updated",
                                          params={"uri": uri}), "told")
            return [each["params"]["uri"] for each in client.heard]
        self.assertEqual(heard("demo://open/a"), [])
        self.assertIn("result", client.request("resources/subscribe", {"uri": "demo://open/a"}))
        self.assertEqual(heard("demo://open/a"), ["demo://open/a"])
        self.assertEqual(heard("demo://secret/b"), [])
        self.assertIn("result", client.request("resources/unsubscribe", {"uri": "demo://open/a"}))
        self.assertEqual(heard("demo://open/a"), [])

    def test_a_word_that_names_nothing_starts_nothing(self):
        for word in ("no-such", "tools", "tasks", "resources,no-such"):
            status, _, err = self.glove("mcp", "tools", *self.upstream("a", *self.actor()), "--relay", word)
            self.assertEqual(status, 2, err)
        self.assertEqual(self.arrived(), [])

    def test_what_an_agent_is_asked_for_ends_with_its_call(self):
        client = self.act("--relay", "sampling", "--call-timeout", "1s", initialize=False)
        client.initialize(capabilities={"sampling": {}})
        call = client.start_call("act", do="ask", method="sampling/createMessage", params={}, id="q")
        asked = client.receive()
        self.assertEqual(asked["method"], "sampling/createMessage")
        self.assert_not_done(client.answer(call))
        # The server hears that nobody will answer, and a late answer goes nowhere.
        client.put(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"late": True}}) + "\n")
        self.assert_words(client.call("act", words="on"), "on")
        answers = [each for each in self.arrived() if each.get("id") == "q"]
        self.assertEqual(len(answers), 1)
        self.assertIn("error", answers[0])

    def test_an_agent_that_offers_nothing_is_asked_for_nothing(self):
        client = self.act("--relay", "sampling,elicitation")
        began = time.monotonic()
        for method in ("sampling/createMessage", "elicitation/create"):
            heard = json.loads(session.words(client.call("act", do="ask", method=method)))
            self.assertEqual(heard["error"]["code"], NO_METHOD)
        self.assertLess(time.monotonic() - began, mediation_case.AT_ONCE)
        self.assertEqual(client.heard, [])


if __name__ == "__main__":
    mediation_case.inside.main()
