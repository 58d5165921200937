"""What a rule of the operator makes of calls and results beyond who may call what: how many, how fast,
how large, how long, and without which words."""
import os
import time

import inside
import mediation_case
import session


class Limits(mediation_case.Case):
    def ruled(self, text, **options):
        name = self.place.path("tools.toml")
        with open(name, "w", encoding="utf-8") as file:
            file.write('[tool."a.act"]\nallow = true\n' + text)
        os.chmod(name, 0o600)
        return self.act("--policy", name, allow=["a.other"], **options)

    def test_so_many_calls_and_not_one_more(self):
        client = self.ruled("calls = 3\n")
        for number in range(3):
            self.assert_words(client.call("act", words=str(number)), str(number))
        for _ in range(2):
            self.assert_denied(client.call("act", words="more"), "3")
        self.assertEqual(len(self.arrived("tools/call")), 3)
        self.assert_words(client.call("other", words="x"), "x")

    def test_so_many_calls_a_minute_and_not_one_more(self):
        client = self.ruled("per_minute = 5\n")
        calls = [client.start_call("act", words="x") for _ in range(8)]
        said = [client.answer(call) for call in calls]
        self.assertEqual([session.is_tool_error(each) for each in said], [False] * 5 + [True] * 3)
        self.assertEqual(len(self.arrived("tools/call")), 5)

    def test_a_denied_call_is_not_counted(self):
        client = self.ruled('calls = 1\n[[tool."a.act".argument]]\nat = "/words"\nequals = "good"\n')
        for _ in range(3):
            self.assert_denied(client.call("act", words="bad"))
        self.assert_words(client.call("act", words="good"), "good")
        self.assert_denied(client.call("act", words="good"))

    def test_a_tool_has_its_own_time(self):
        client = self.ruled('timeout = "1s"\n')
        began = time.monotonic()
        self.assert_not_done(client.call("act", do="silent"))
        self.assertTrue(0.9 < time.monotonic() - began < 1 + mediation_case.AT_ONCE)
        self.assert_words(client.call("other", do="sleep", seconds=1.5), "slept")

    def test_a_tool_has_its_own_size_of_result(self):
        client = self.ruled('result_bytes = "10K"\n')
        self.assertEqual(len(session.words(client.call("act", do="large", bytes=10_000))), 10_000)
        self.assertTrue(session.is_tool_error(client.call("act", do="large", bytes=10_300)))
        self.assertEqual(len(session.words(client.call("other", do="large", bytes=10_300))), 10_300)

    def test_words_that_are_redacted_do_not_arrive(self):
        client = self.ruled('redact = ["secret-[0-9]+"]\n')
        for words, seen in (("a secret-123 b", "a [redacted] b"), ("plain", "plain"), ("secret-", "secret-"),
                            ("\\secret-1\n\u2028secret-22\"", "\\[redacted]\n\u2028[redacted]\"")):
            self.assert_words(client.call("act", words=words), seen)
            self.assert_words(client.call("other", words=words), words)
        result = {"content": [{"type": "text", "text": "x", "_meta": {"deep": ["secret-1"]}}],
                  "structuredContent": {"a": [{"b": "secret-2"}]}}
        said = client.call("act", do="result", result=result)["result"]
        self.assertEqual(said["structuredContent"], {"a": [{"b": "[redacted]"}]})
        self.assertEqual(said["content"][0]["_meta"], {"deep": ["[redacted]"]})

    def test_an_escaped_word_is_the_same_word(self):
        """What the server escapes, the rule reads."""
        client = self.ruled('redact = ["sécret"]\n')
        said = client.call("act", words="a sécret")  # the actor writes é as an escape
        self.assert_words(said, "a [redacted]")

    def test_many_calls_at_once(self):
        client = self.act()
        calls = [client.start_call("act", do="silent") for _ in range(300)]
        began = time.monotonic()
        refused = client.answer(calls[-1], 10)
        self.assertLess(time.monotonic() - began, mediation_case.AT_ONCE)
        self.assert_not_done(refused)
        self.assertTrue(inside.wait_until(lambda: len(self.arrived("tools/call")) == 256, 10))
        # The n-th is still open, and the connection lives.
        self.assertEqual(client.request("ping")["result"], {})


if __name__ == "__main__":
    inside.main()
