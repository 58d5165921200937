"""Servers that break the protocol, die, flood, cling or never begin. Whatever they do, the call that
waits is answered at once, the other server goes on, and nothing of the bad one stays.
"""
import itertools
import json
import os
import signal
import time

import inside
import mediation_case
import session

AT_ONCE = mediation_case.AT_ONCE
serial = itertools.count()
# What no answer can be made of: the call fails, at once.
BROKEN = ["both", "badutf8", "embednl", "deep", "twice", "batch", "noise", "neither", "nullid", "unended", "die"]
# Those of them that the official client waits on until its own time is over.
HANGS = ["both", "embednl", "batch", "noise", "neither", "nullid"]
TIMEOUT_OF_THE_CLIENT = -32001
# What is no answer to the call, or more than one: the call is answered by the right one.
BORNE = {"wrongid": "ok", "dup": "first", "stderr": "ok"}


def marker():
    return f"mediated-{os.getpid()}-{next(serial)}"


class Hostile(mediation_case.Case):
    def beside(self, *flags, actor=(), **options):
        """A client of a server that will be bad and of an honest one."""
        honest = [*mediation_case.PYTHON, os.path.join(mediation_case.HERE, "actor.py")]
        return self.serve(*self.upstream("bad", *self.actor(*actor)), *self.upstream("good", *honest),
                          "--allow", "bad.*", "--allow", "good.*", *flags, **options)

    def good(self, client):
        began = time.monotonic()
        self.assert_words(client.call("good__act", words="honest"), "honest")
        self.assertLess(time.monotonic() - began, AT_ONCE)

    def test_where_the_official_client_hangs_alone_it_is_told_at_once(self):
        def outcomes(command):
            done = self.place.bare(*mediation_case.node(mediation_case.script("plain_client.mjs")), ",".join(HANGS),
                                   *command)
            self.assertEqual(done.returncode, 0, done.stderr.decode() + self.stderr())
            return json.loads(done.stdout)
        for deed, seen in outcomes(self.actor()).items():
            self.assertEqual(seen["code"], TIMEOUT_OF_THE_CLIENT, f"{deed}: {seen}")
        glove = self.serve_command(*self.upstream("a", *self.actor()), "--tool-names", "bare", "--allow", "a.*")
        for deed, seen in outcomes(glove).items():
            self.assertNotIn(seen["code"], (None, TIMEOUT_OF_THE_CLIENT), f"{deed}: {seen}")
            self.assertLess(seen["milliseconds"], 1000 * AT_ONCE, f"{deed}: {seen}")

    def test_what_is_no_answer_fails_the_call_at_once_and_the_connection_lives(self):
        for deed in BROKEN:
            with self.subTest(deed):
                client = self.beside()
                began = time.monotonic()
                said = client.call("bad__act", do=deed, patience=30)
                self.assertLess(time.monotonic() - began, AT_ONCE)
                self.assert_not_done(said)
                self.good(client)
                self.assertLess(self.again(client, "bad__act"), 10)
                self.assertEqual([each for each in client.heard if "id" in each], [])
                client.close()
        self.assertEqual([each["do"] for each in self.arrived_calls() if each["do"] != "echo"], BROKEN)

    def test_every_call_that_waits_fails_with_the_one_that_broke(self):
        client = self.beside()
        for deed in ("badutf8", "die"):
            with self.subTest(deed):
                calls = [client.start_call("bad__act", do="silent") for _ in range(10)]
                calls.append(client.start_call("bad__act", do=deed))
                began = time.monotonic()
                for call in calls:
                    self.assert_not_done(client.answer(call, 30))
                self.assertLess(time.monotonic() - began, AT_ONCE)
                self.again(client, "bad__act")

    def test_strange_ids_are_nobodys(self):
        client = self.beside("--call-timeout", "2s")
        for deed in ("onlywrongid", "strid"):
            with self.subTest(deed):
                began = time.monotonic()
                said = client.call("bad__act", do=deed)
                self.assertLess(time.monotonic() - began, 2 + AT_ONCE)
                self.assert_not_done(said)
                self.again(client, "bad__act")

    def test_what_can_be_borne_is(self):
        client = self.beside()
        for deed, words in BORNE.items():
            with self.subTest(deed):
                began = time.monotonic()
                self.assert_words(client.call("bad__act", do=deed), words)
                self.assertLess(time.monotonic() - began, AT_ONCE)
        self.assert_words(client.call("bad__act", words="on"), "on")
        self.assertEqual([each for each in client.heard if "id" in each], [])

    def test_one_that_says_nothing_costs_the_time_of_a_call(self):
        client = self.beside("--call-timeout", "1s")
        began = time.monotonic()
        self.assert_not_done(client.call("bad__act", do="silent"))
        self.assertTrue(0.9 < time.monotonic() - began < 1 + AT_ONCE)
        self.good(client)
        self.assert_words(client.call("bad__act", words="on"), "on")

    def test_megabytes_of_stderr_stop_nothing(self):
        client = self.beside()
        self.assert_words(client.call("bad__act", do="stderr", lines=40), "ok")  # 12 MB
        self.assert_words(client.call("bad__act", do="stderr", lines=1, bytes=4_000_000), "ok")
        self.assertLess(os.path.getsize(self.stderr_file), 1 << 20)

    def test_floods_are_dropped_and_the_answer_comes(self):
        client = self.beside()
        for method in ("notifications/message", "notifications/no-such", "notifications/resources/updated"):
            with self.subTest(method):
                began = time.monotonic()
                self.assert_words(client.call("bad__act", do="flood", count=20_000, method=method), "flooded")
                self.assertLess(time.monotonic() - began, 10)
        self.assertEqual(client.heard, [])
        self.good(client)

    def test_a_storm_of_changed_lists_is_a_question_or_two(self):
        client = self.beside()
        before = len(self.arrived("tools/list"))
        self.assert_words(client.call("bad__act", do="storm", count=500), "stormed")
        time.sleep(3)
        asked = len(self.arrived("tools/list")) - before
        self.assertTrue(1 <= asked <= 4, asked)
        self.assert_words(client.call("bad__act", words="on"), "on")
        # The list is the same: the agent hears nothing of it.
        self.assertEqual([each for each in client.heard if "list_changed" in each.get("method", "")], [])

    def test_requests_without_end_are_refused_without_end(self):
        client = self.beside()
        self.assert_words(client.call("bad__act", do="requests", count=3000), "asked")
        self.good(client)
        self.assert_words(client.call("bad__act", words="on"), "on")
        refused = [each for each in self.arrived() if str(each.get("id", "")).startswith("own-")]
        self.assertEqual(len(refused), 3000)
        self.assertEqual({each["error"]["code"] for each in refused}, {-32601})

    def test_one_that_leaves_after_each_answer_is_started_again(self):
        client = self.beside()
        for _ in range(2):
            self.assert_words(client.call("bad__act", do="once"), "once")
            self.again(client, "bad__act")
        self.good(client)

    def test_one_that_dies_again_and_again_is_not_started_again_and_again(self):
        client = self.beside()
        pauses = []
        for _ in range(3):
            self.assert_not_done(client.call("bad__act", do="die"))
            pauses.append(self.again(client, "bad__act"))
            self.good(client)
        self.assertGreater(pauses[1], pauses[0] * 1.3)
        self.assertGreater(pauses[2], pauses[1] * 1.3)
        self.assertEqual(len(self.arrived("initialize")), 4)

    def test_large_results(self):
        client = self.beside()
        for mebibytes, fits in ((9, True), (11, False)):
            said = client.call("bad__act", do="large", bytes=mebibytes << 20)
            if fits:
                self.assertEqual(len(session.words(said)), mebibytes << 20)
            else:
                self.assertTrue(session.is_tool_error(said), str(said)[:300])
                self.assertIn(str(10 << 20), session.words(said))
                self.assertIn("--result-bytes", session.words(said))
        self.assert_words(client.call("bad__act", words="on"), "on")

    def test_a_line_that_does_not_end_is_cut_off(self):
        client = self.beside()
        began = time.monotonic()
        said = client.call("bad__act", do="line", bytes=17 << 20)
        self.assertLess(time.monotonic() - began, 10)
        self.assert_not_done(said)
        self.assertIn(str(16 << 20), json.dumps(said))
        self.good(client)
        self.again(client, "bad__act")

    def test_memory_stays_bounded(self):
        client = self.beside()
        mediators = [pid for pid in inside.descendants(client.process.pid)] + [client.process.pid]
        mediators = [pid for pid in mediators if mediation_case.name_of(pid) in mediation_case.MEDIATORS]
        for _ in range(3):
            client.call("bad__act", do="line", bytes=64 << 20)
            self.again(client, "bad__act")
        used = max(inside.resident_kib(pid) for pid in mediators)
        self.assertLess(used, 160 * 1024)


class Starts(mediation_case.Case):
    def test_noise_before_the_beginning_is_borne(self):
        for mode in ("banner", "early", "slow"):
            with self.subTest(mode):
                client = self.act(actor=["--start", mode])
                self.assert_words(client.call("act", words="x"), "x")
                client.close()

    def test_noise_without_end_is_not(self):
        client = self.act(actor=["--start", "banners"], initialize=False)
        self.fails_to_start(client)

    def fails_to_start(self, client, *words, seconds=10):
        """Glove ends, or every call is told why: never a wait without an end."""
        began = time.monotonic()
        try:
            client.initialize()
            said = client.call("act", words="x")
            self.assert_not_done(said)
            told = json.dumps(said) + self.stderr()
        except (session.Closed, BrokenPipeError):
            told = self.stderr()
            self.assertNotEqual(client.status(), 0)
        self.assertLess(time.monotonic() - began, seconds)
        for each in words:
            self.assertIn(each, told)

    def test_one_that_does_not_come_up_is_named_with_its_last_words(self):
        client = self.act("--start-timeout", "2s", actor=["--start", "never"], initialize=False)
        self.fails_to_start(client, "fetching 818 MB of packages", "a", seconds=2 + 5)

    def test_one_that_ends_at_once_is_named_with_its_last_words(self):
        client = self.act(actor=["--start", "dies"], initialize=False)
        self.fails_to_start(client, "cannot start: a reason", "status 7")

    def test_one_that_is_not_there_is_named(self):
        client = self.serve(*self.upstream("a", "/no/such/program"), "--allow", "a.*", initialize=False)
        self.fails_to_start(client, "/no/such/program")

    def test_the_words_of_a_server_reach_a_terminal_without_its_controls(self):
        client = self.act(initialize=False, actor=["--start", "colours"])
        self.fails_to_start(client, "red")
        for control in ("\x1b", "\x07"):
            self.assertNotIn(control, self.stderr())

    def test_a_list_without_an_end_is_refused(self):
        client = self.act("--start-timeout", "10s", actor=["--start", "pages"], initialize=False)
        self.fails_to_start(client, seconds=15)

    def test_a_list_of_many_pages_is_taken_whole(self):
        client = self.act(actor=["--start", "long-list"])
        self.assertEqual(len(client.tools()), 250)
        self.assert_words(client.call("act249", words="x"), "x")


class Clinging(mediation_case.Case):
    """What a server leaves behind when it ends, however it ends."""

    def gone(self, mark, seconds=8):
        self.assertTrue(inside.wait_until(lambda: not inside.marked(mark), seconds), inside.marked(mark))

    def test_grandchildren_end_with_the_connection(self):
        mark = marker()
        client = self.act()
        self.assert_words(client.call("act", do="fork", marker=mark), "forked")
        self.assertEqual(len(inside.marked(mark)), 1)
        client.status(20)
        self.gone(mark)

    def test_grandchildren_of_a_server_that_died_end_with_the_connection(self):
        mark = marker()
        client = self.act()
        self.assert_words(client.call("act", do="fork", marker=mark), "forked")
        self.assert_not_done(client.call("act", do="die"))
        self.again(client)
        client.status(20)
        self.gone(mark)

    def test_one_that_ignores_every_signal_and_its_end_is_killed(self):
        mark = marker()
        client = self.act(actor=["--marker", mark])
        self.assert_words(client.call("act", do="cling"), "clinging")
        began = time.monotonic()
        client.status(20)
        self.assertLess(time.monotonic() - began, 15)
        self.gone(mark, 1)

    def test_a_signal_ends_everything(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number):
                mark = marker()
                client = self.act(actor=["--marker", mark])
                self.assert_words(client.call("act", do="fork", marker=mark), "forked")
                began = time.monotonic()
                client.process.send_signal(number)
                client.process.wait(20)
                self.assertLess(time.monotonic() - began, 10)
                self.gone(mark)
                client.close()


if __name__ == "__main__":
    inside.main()
