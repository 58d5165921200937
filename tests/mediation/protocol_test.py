"""The protocol as a careful client and a careless one speak it to Glove: what is answered, with what,
and that nothing of what was refused reaches a server."""
import json
import time

import mediation_case
import session

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
TIMED_OUT, GONE, TOO_LARGE = -31002, -31001, -31003


class Lifecycle(mediation_case.Case):
    def test_the_newest_common_revision_is_chosen(self):
        for wanted, given in (("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"),
                              ("2025-03-26", "2025-03-26"), ("2024-11-05", "2024-11-05"),
                              ("1999-01-01", "2025-11-25"), ("2026-07-28", "2025-11-25"), ("", "2025-11-25")):
            with self.subTest(wanted):
                client = self.act(initialize=False)
                said = client.initialize(wanted)["result"]
                self.assertEqual(said["protocolVersion"], given)
                self.assertEqual(said["serverInfo"]["name"], "glove")
                self.assert_words(client.call("act", words="hello"), "hello")
                client.close()

    def test_what_is_not_relayed_is_not_offered(self):
        offered = self.act(initialize=False).initialize()["result"]["capabilities"]
        self.assertIn("tools", offered)
        self.assertEqual(set(offered) - {"tools"}, set())

    def test_before_initialize_nothing_is_done(self):
        client = self.act(initialize=False)
        self.assertEqual(client.request("ping")["result"], {})
        for method, params in (("tools/call", {"name": "act", "arguments": {"words": "early"}}), ("tools/list", {}),
                               ("resources/list", {}), ("no/such", {})):
            with self.subTest(method):
                self.assert_failed(client.request(method, params), INVALID_REQUEST)
        self.assert_failed(client.request("server/discover"), NO_METHOD)
        self.assertIn("result", client.initialize())
        self.assert_words(client.call("act", words="in time"), "in time")
        self.assertEqual([each.get("words") for each in self.arrived_calls()], ["in time"])

    def test_a_client_is_initialized_once(self):
        client = self.act()
        self.assert_failed(client.initialize(), INVALID_REQUEST)
        self.assert_words(client.call("act", words="still"), "still")

    def test_a_probe_for_a_newer_revision_is_answered_at_once(self):
        client = self.act(initialize=False)
        client.send("server/discover", {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}, "probe-1")
        self.assert_failed(client.answer("probe-1", mediation_case.AT_ONCE), NO_METHOD)
        self.assertIn("result", client.initialize())
        self.assert_words(client.call("act", words="hello"), "hello")

    def test_the_server_is_told_of_glove_and_of_what_it_answers(self):
        client = self.act()
        self.assert_words(client.call("act", words="x"), "x")
        first = self.arrived()[0]
        self.assertEqual(first["method"], "initialize")
        self.assertEqual(first["params"]["clientInfo"]["name"], "glove")
        self.assertFalse({"sampling", "elicitation", "tasks"} & set(first["params"]["capabilities"]), first)
        self.assertEqual(self.arrived()[1]["method"], "notifications/initialized")

    def test_a_ping_is_answered_while_a_call_is_under_way(self):
        client = self.act()
        call = client.start_call("act", do="sleep", seconds=1)
        began = time.monotonic()
        self.assertEqual(client.request("ping")["result"], {})
        self.assertLess(time.monotonic() - began, 0.9)
        self.assertNotIn(call, [each.get("id") for each in client.heard])
        self.assert_words(client.answer(call), "slept")
        self.assertEqual(self.arrived("ping"), [])

    def test_the_end_of_the_client_is_the_end(self):
        client = self.act()
        began = time.monotonic()
        self.assertEqual(client.status(), 0, self.stderr())
        self.assertLess(time.monotonic() - began, 6)

    def test_what_was_asked_before_the_end_is_answered(self):
        client = self.act()
        call = client.start_call("act", words="last")
        client.hang_up()
        heard = {each["id"]: each for each in client.until_closed()}
        self.assert_words(heard[call], "last")
        self.assertEqual(client.status(), 0)


class Lines(mediation_case.Case):
    def setUp(self):
        super().setUp()
        self.client = self.act()

    def works(self, words="it goes on"):
        self.assert_words(self.client.call("act", words=words), words)

    def test_a_line_that_is_no_message_is_told_and_nothing_more(self):
        for line, code in ((b"{", PARSE_ERROR), (b"hello", PARSE_ERROR), (b'{"jsonrpc":"2.0"', PARSE_ERROR),
                           (b'{"jsonrpc":"2.0","id":1,"method":"ping"} x', PARSE_ERROR),
                           (b'{"jsonrpc":"2.0","id":1,"method":"pi\xff"}', PARSE_ERROR),
                           (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', PARSE_ERROR),
                           (b'{"jsonrpc":"2.0","id":01,"method":"ping"}', PARSE_ERROR),
                           (b"[" * 100_000, PARSE_ERROR),
                           (b"[]", INVALID_REQUEST), (b"1", INVALID_REQUEST), (b"null", INVALID_REQUEST),
                           (b'"ping"', INVALID_REQUEST), (b"{}", INVALID_REQUEST),
                           (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', INVALID_REQUEST),
                           (b'{"id":1,"method":"ping"}', INVALID_REQUEST),
                           (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', INVALID_REQUEST),
                           (b'{"jsonrpc":2.0,"id":1,"method":"ping"}', INVALID_REQUEST),
                           (b'{"jsonrpc":"2.0","id":1,"method":5}', INVALID_REQUEST),
                           (b'{"jsonrpc":"2.0","id":1}', INVALID_REQUEST),
                           (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}', INVALID_REQUEST),
                           (b'{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}', INVALID_REQUEST)):
            with self.subTest(line[:60]):
                said = self.client.raw(line)
                # A message whose form is sound but for one thing may be told apart from noise or not.
                self.assert_failed(said, code, INVALID_REQUEST if code == PARSE_ERROR else PARSE_ERROR)
                self.assertIn(said["id"], (None, 1))
        self.works()

    def test_ids_come_back_as_they_were(self):
        for token in (b"1", b'"1"', b"0", b"-7", b"9007199254740993", b"123456789012345678901234567890", b'"\\u0041"',
                      b'""', b'"a b"'):
            with self.subTest(token):
                for method in (b'"ping"', b'"tools/call","params":{"name":"act","arguments":{}}'):
                    self.client.put(b'{"jsonrpc":"2.0","id":' + token + b',"method":' + method + b"}\n")
                    line = self.client.line()
                    self.assertIn(b'"result"', line)
                    self.assertIn(b'"id":' + token, line)
        # The same id again when the first has been answered, and the number beside the string.
        for identifier, words in ((5, "n"), ("5", "s")):
            self.client.send("tools/call", {"name": "act", "arguments": {"words": words}}, identifier)
        self.assert_words(self.client.answer(5), "n")
        self.assert_words(self.client.answer("5"), "s")

    def test_ids_that_are_none_are_refused(self):
        before = len(self.arrived())
        for token in (b"null", b"1.5", b"1e3", b"true", b"[1]", b'{"a":1}'):
            with self.subTest(token):
                said = self.client.raw(b'{"jsonrpc":"2.0","id":' + token
                                       + b',"method":"tools/call","params":{"name":"act","arguments":{}}}')
                self.assert_failed(said, INVALID_REQUEST, PARSE_ERROR)
                self.assertIsNone(said["id"])
        self.assertEqual(len(self.arrived()), before)
        self.works()

    def test_the_servers_see_ids_of_glove_alone(self):
        self.client.put(b'{"jsonrpc":"2.0","id":"secret-of-the-agent","method":"tools/call",'
                        b'"params":{"name":"act","arguments":{}}}\n')
        self.assertIn("result", self.client.answer("secret-of-the-agent"))
        ids = [each["id"] for each in self.arrived() if "id" in each and "method" in each]
        self.assertTrue(all(isinstance(each, int) for each in ids), ids)
        self.assertEqual(len(ids), len(set(ids)))

    def test_a_name_twice_is_refused_at_every_depth(self):
        line = '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"act","arguments":{"words":"x"}}}'
        for once, twice in (('"id":9', '"id":9,"id":9'), ('"jsonrpc":"2.0"', '"jsonrpc":"2.0","jsonrpc":"2.0"'),
                            ('"method":"tools/call"', '"method":"ping","method":"tools/call"'),
                            ('"params":{', '"params":{},"params":{'),
                            ('"name":"act"', '"name":"other","name":"act"'),
                            ('"name":"act"', '"name":"other","na\\u006de":"act"'),
                            ('"arguments":{', '"arguments":{},"arguments":{'),
                            ('"words":"x"', '"words":"y","words":"x"'),
                            ('"words":"x"', '"words":"y","w\\u006frds":"x"'),
                            ('"words":"x"', '"words":"x","deep":[{"a":1,"a":2}]'),
                            ('"name":"act"', '"name":"act","_meta":{"progressToken":1,"progressToken":2}')):
            with self.subTest(twice):
                self.assertIn(once, line)
                said = self.client.raw(line.replace(once, twice))
                self.assert_failed(said, PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS)
        self.assertEqual(self.arrived("tools/call"), [])
        said = self.client.raw(line)
        self.assert_words(said, "x")

    def test_names_in_another_case_are_other_names(self):
        for params in ({"Name": "act", "arguments": {}}, {"NAME": "act"}, {"name ": "act"}, {" name": "act"},
                       {"name": 5}, {"name": None}, {"name": ["act"]}, {}, None, []):
            with self.subTest(params):
                self.assert_failed(self.client.request("tools/call", params), INVALID_PARAMS, INVALID_REQUEST)
        for member in ("Method", "METHOD", "method "):
            with self.subTest(member):
                said = self.client.raw(json.dumps({"jsonrpc": "2.0", "id": 3, member: "ping"}))
                self.assert_failed(said, INVALID_REQUEST)
        self.assertEqual(self.arrived("tools/call"), [])
        # Beside the right one, it is not what is evaluated, and does not reach the server.
        said = self.client.request("tools/call", {"name": "act", "Name": "other", "NAME": "other", "extra": 1,
                                                  "arguments": {"do": "params"}})
        self.assertEqual(set(json.loads(session.words(said))), {"name", "arguments"})

    def test_arguments_arrive_as_they_were_meant(self):
        given = {"do": "params", "text": "\u2028\u2029\u0085\u0000\U0001f600\u202e\"\\/\r\n", "number": 1.5,
                 "large": 2 ** 53 + 1, "none": None, "list": [{"a": []}, False], "Do": "not"}
        said = self.client.call("act", **given)
        self.assertEqual(json.loads(session.words(said))["arguments"], given)
        # Digits are not lost to floating point.
        self.client.put(b'{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"act","arguments":'
                        b'{"do":"echo","words":123456789012345678901234567890}}}\n')
        self.assert_words(self.client.answer(77), "123456789012345678901234567890")

    def test_absent_arguments_are_absent_and_null_is_refused(self):
        said = self.client.request("tools/call", {"name": "act"})
        self.assertIn("result", said)
        last = self.arrived("tools/call")[-1]["params"]
        self.assertIn(last.get("arguments", {}), ({},))
        for arguments in (None, [], "x", 5, True):
            with self.subTest(arguments):
                said = self.client.request("tools/call", {"name": "act", "arguments": arguments})
                self.assert_failed(said, INVALID_PARAMS, INVALID_REQUEST)
        self.assertEqual(len(self.arrived("tools/call")), 1)

    def test_other_ends_of_lines_and_blank_lines_are_borne(self):
        self.client.put(b'\n\r\n\n{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n\r\n')
        self.assertEqual(self.client.receive()["id"], 1)
        self.client.put(b' \t{"jsonrpc":"2.0","id":2,"method":"ping"} \n')
        self.assertEqual(self.client.receive()["id"], 2)
        # What comes in pieces is one line.
        for piece in (b'{"jsonrpc":"2.0",', b'"id":3,"met', b'hod":"ping"}', b"\n"):
            self.client.put(piece)
            time.sleep(0.05)
        self.assertEqual(self.client.receive()["id"], 3)

    def test_a_line_at_the_limit_passes_and_one_byte_more_does_not(self):
        limit = 16 << 20
        start, end = b'{"jsonrpc":"2.0","id":4,"method":"ping","params":{"x":"', b'"}}'
        for longer, fits in ((0, True), (1, False)):
            line = start + b"x" * (limit - len(start) - len(end) + longer) + end
            self.assertEqual(len(line), limit + longer)
            said = self.client.raw(line)
            if fits:
                self.assertIn("result", said, str(said)[:300])
            else:
                self.assert_failed(said, TOO_LARGE, INVALID_REQUEST, PARSE_ERROR)
                self.assertIn(str(limit), said["error"]["message"])
        self.works()

    def test_the_depth_is_bounded(self):
        def nested(depth):
            return (b'{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"act","arguments":{"x":'
                    + b"[" * depth + b"]" * depth + b"}}}")
        self.assertIn("result", self.client.raw(nested(32)))
        self.assertIn("error", self.client.raw(nested(100_000)))
        self.works()

    def test_a_peer_that_says_only_nonsense_is_left(self):
        for _ in range(100):
            self.client.put(b"nonsense\n")
        for _ in range(100):
            self.assert_failed(self.client.receive(), PARSE_ERROR)
        self.works()  # a hundred in a row are borne, and one message starts the count anew
        with self.assertRaises((session.Closed, BrokenPipeError)):
            for _ in range(200):
                self.client.put(b"nonsense\n")
            while True:
                self.client.receive()

    def test_unknown_methods_are_refused_and_unknown_notifications_borne(self):
        for method in ("no/such", "resources/list", "resources/read", "prompts/list", "prompts/get",
                       "completion/complete", "logging/setLevel", "tasks/list", "tasks/get", "tools/Call",
                       "TOOLS/CALL", "sampling/createMessage", "roots/list",
                       "notifications/initialized", "notifications/cancelled", ""):
            with self.subTest(method):
                self.assert_failed(self.client.request(method, {}), NO_METHOD, INVALID_REQUEST)
        for method in ("notifications/no-such", "tools/call", "notifications/message",
                       "notifications/tools/list_changed"):
            self.client.send(method, {"name": "act", "arguments": {}})
        self.works()
        self.assertEqual(len(self.arrived("tools/call")), 1)
        methods = {each.get("method") for each in self.arrived()}
        self.assertEqual(methods - {"initialize", "notifications/initialized", "tools/list", "tools/call"}, set())

    def test_answers_that_nobody_waits_for_are_dropped(self):
        for line in (b'{"jsonrpc":"2.0","id":1,"result":{}}',
                     b'{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}'):
            self.client.put(line + b"\n")
        self.works()

    def test_a_cursor_is_ours_or_refused(self):
        self.assert_failed(self.client.request("tools/list", {"cursor": "of somebody else"}), INVALID_PARAMS)
        self.assertEqual(set(self.client.tools()), {"act", "other"})


class Calls(mediation_case.Case):
    def test_a_tool_that_is_not_there_is_told_as_the_protocol_wants(self):
        client = self.act()
        for name in ("nothing", "a.act", "a__act", "act ", "ACT", "", "../act", "x" * 200):
            with self.subTest(name):
                said = client.request("tools/call", {"name": name, "arguments": {}})
                self.assert_failed(said, INVALID_PARAMS)
                self.assertIn("Unknown tool", said["error"]["message"])
        self.assertEqual(self.arrived("tools/call"), [])

    def test_names_are_qualified_unless_asked_otherwise(self):
        client = self.serve(*self.upstream("a", *self.actor()), "--allow", "a.*")
        self.assertEqual(set(client.tools()), {"a__act", "a__other"})
        self.assert_words(client.call("a__act", words="x"), "x")
        self.assertEqual(self.arrived("tools/call")[0]["params"]["name"], "act")
        self.assert_failed(client.call("act"), INVALID_PARAMS)

    def test_a_tool_that_no_rule_allows_is_neither_seen_nor_called(self):
        client = self.act(allow=["a.act"])
        self.assertEqual(set(client.tools()), {"act"})
        self.assert_denied(client.call("other", words="x"))
        self.assertEqual(self.arrived("tools/call"), [])
        self.assert_words(client.call("act", words="x"), "x")

    def test_without_any_rule_there_is_nothing(self):
        client = self.act(allow=[])
        self.assertEqual(client.tools(), {})
        self.assert_denied(client.call("act"))
        self.assertEqual(self.arrived("tools/call"), [])

    def test_a_denial_wins(self):
        client = self.act("--deny", "a.other")
        self.assertEqual(set(client.tools()), {"act"})
        self.assert_denied(client.call("other"))
        self.assert_words(client.call("act", words="x"), "x")

    def test_a_rename_is_the_only_name(self):
        client = self.act("--rename", "do_it=a.act")
        self.assertEqual(set(client.tools()), {"do_it", "other"})
        self.assert_words(client.call("do_it", words="x"), "x")
        self.assert_failed(client.call("act"), INVALID_PARAMS)

    def test_names_that_collide_are_all_hidden(self):
        client = self.serve(*self.upstream("a", *self.actor()), *self.upstream("b", *self.actor()),
                            "--allow", "a.*", "--allow", "b.*", "--rename", "b__act=a.act")
        self.assertEqual(set(client.tools()), {"a__other", "b__other"})
        for name in ("b__act", "a__act"):
            self.assert_not_done(client.call(name))
        self.assertEqual(self.arrived("tools/call"), [])
        self.assert_words(client.call("b__other", words="x"), "x")

    def test_an_argument_is_held_to_its_prefix(self):
        client = self.act("--allow-arg", "a.act:words=good-", allow=["a.act"])
        self.assert_words(client.call("act", words="good-one"), "good-one")
        for words in ("bad", "Good-one", " good-one", "goo", "", ["good-one"], {"good-": 1}, 5, None, True):
            with self.subTest(words):
                self.assert_denied(client.call("act", words=words))
        self.assert_denied(client.call("act"))
        self.assertEqual(len(self.arrived("tools/call")), 1)

    def test_a_time_limit_ends_a_call_and_tells_the_server(self):
        client = self.act("--call-timeout", "1s")
        began = time.monotonic()
        said = client.call("act", do="silent")
        took = time.monotonic() - began
        self.assert_not_done(said)
        self.assertTrue(0.9 < took < 1 + mediation_case.AT_ONCE, took)
        self.assertEqual(len(self.arrived("tools/call")), 1)
        self.assert_words(client.call("act", words="x"), "x")
        cancelled = self.arrived("notifications/cancelled")
        self.assertEqual([each["params"]["requestId"] for each in cancelled], [self.arrived("tools/call")[0]["id"]])

    def test_a_late_answer_is_dropped(self):
        client = self.act("--call-timeout", "500ms")
        self.assert_not_done(client.call("act", do="sleep", seconds=1.5))
        time.sleep(1.5)
        self.assert_words(client.call("act", words="next"), "next")
        self.assertEqual(client.heard, [])

    def test_a_cancelled_call_is_cancelled_at_its_server_at_once(self):
        client = self.act()
        call = client.start_call("act", do="silent")
        quiet = client.start_call("act", do="silent")
        self.assertTrue(mediation_case.inside.wait_until(lambda: len(self.arrived("tools/call")) == 2, 10))
        client.send("notifications/cancelled", {"requestId": call, "reason": "enough"})
        for stranger in (9999, str(call), None, 1.5):
            client.send("notifications/cancelled", {"requestId": stranger})
        self.assertTrue(mediation_case.inside.wait_until(lambda: self.arrived("notifications/cancelled"), 5))
        self.assert_words(client.call("act", words="x"), "x")
        ids = [each["id"] for each in self.arrived("tools/call")]
        self.assertEqual([each["params"]["requestId"] for each in self.arrived("notifications/cancelled")], [ids[0]])
        self.assertFalse([each for each in client.heard if each.get("id") in (call, quiet)], client.heard)

    def test_progress_reaches_the_call_that_asked_for_it(self):
        client = self.act()
        for token in ("mine", 7, 0):
            call = client.start_call("act", token, do="progress", steps=3, words="w")
            self.assert_words(client.answer(call), "w")
            heard, client.heard = client.heard, []
            self.assertEqual([(each["method"], each["params"]["progressToken"]) for each in heard],
                             [("notifications/progress", token)] * 3)
            self.assertEqual([each["params"]["progress"] for each in heard], [0, 1, 2])
        tokens = [each["params"]["_meta"]["progressToken"] for each in self.arrived("tools/call")]
        self.assertEqual(len(set(map(str, tokens))), 3)
        self.assertFalse({"mine", 7, 0} & set(tokens), tokens)

    def test_progress_that_nobody_asked_for_is_dropped(self):
        client = self.act()
        call = client.start_call("act", "mine", do="silent")
        self.assert_words(client.call("act", do="strangers", tokens=["mine", 0, 1, 2, 3, "1", "x"]), "ok")
        tokens = [each["params"]["progressToken"] for each in client.heard]
        # A token of Glove's own may be guessed by the server that owns the call, never another's.
        self.assertTrue(set(tokens) <= {"mine"}, client.heard)
        self.assertLessEqual(len(tokens), 1)
        self.assertNotIn(call, [each.get("id") for each in client.heard])

    def test_what_belongs_to_a_call_beside_its_arguments_is_kept(self):
        client = self.act()
        meta = {"progressToken": "mine", "traceparent": "00-1-2-01", "vendor.example/key": {"deep": [1, None]}}
        said = client.request("tools/call", {"name": "act", "arguments": {"do": "params"}, "_meta": meta})
        seen = json.loads(session.words(said))["_meta"]
        self.assertNotEqual(seen.pop("progressToken"), meta.pop("progressToken"))
        self.assertEqual(seen, meta)
        for wrong in (None, 5, [], "x", {"progressToken": None}, {"progressToken": 1.5}, {"progressToken": {}}):
            with self.subTest(wrong):
                said = client.request("tools/call", {"name": "act", "arguments": {}, "_meta": wrong})
                self.assert_failed(said, INVALID_PARAMS, INVALID_REQUEST)
        self.assertEqual(len(self.arrived("tools/call")), 1)

    def test_an_id_that_is_still_open_is_refused(self):
        client = self.act()
        client.send("tools/call", {"name": "act", "arguments": {"do": "sleep", "seconds": 0.5}}, "same")
        client.send("tools/call", {"name": "act", "arguments": {"words": "the second"}}, "same")
        said = client.receive()
        self.assert_failed(said, INVALID_REQUEST)
        self.assertIsNone(said["id"])  # else it would be taken for the answer to the first
        self.assert_words(client.answer("same"), "slept")
        client.send("tools/call", {"name": "act", "arguments": {"words": "the third"}}, "same")
        self.assert_words(client.answer("same"), "the third")
        self.assertEqual(len(self.arrived("tools/call")), 2)

    def test_tasks_are_not_offered(self):
        client = self.act()
        said = client.request("tools/call", {"name": "act", "arguments": {"words": "x"}, "task": {"ttl": 1000}})
        self.assert_failed(said, INVALID_PARAMS, NO_METHOD)
        self.assertEqual(self.arrived("tools/call"), [])

    def test_a_result_at_the_limit_passes_and_a_larger_one_is_refused(self):
        client = self.act("--result-bytes", "64K")
        self.assertEqual(len(session.words(client.call("act", do="large", bytes=60_000))), 60_000)
        said = client.call("act", do="large", bytes=70_000)
        self.assertTrue(session.is_tool_error(said), str(said)[:300])
        for words in ("65536", "--result-bytes"):
            self.assertIn(words, session.words(said))
        self.assert_words(client.call("act", words="x"), "x")

    def test_a_failure_of_the_server_passes_as_it_is(self):
        client = self.act()
        said = client.call("act", do="error")
        self.assertEqual(said["error"], {"code": -32050, "message": "an error of the server"})
        said = client.call("act", do="fails")
        self.assertTrue(session.is_tool_error(said))
        self.assertEqual(session.words(said), "it did not go well")

    def test_a_result_is_passed_whole(self):
        client = self.act()
        result = {"content": [{"type": "text", "text": "t", "annotations": {"priority": 1}, "_meta": {"a": 1}},
                              {"type": "resource_link", "uri": "demo://x", "name": "x"},
                              {"type": "image", "data": "aGk=", "mimeType": "image/png"},
                              {"type": "unheard-of", "x": [1]}],
                  "structuredContent": {"deep": [1, {"b": None}]}, "_meta": {"vendor": {"x": 1}}, "unheardOf": True}
        self.assertEqual(client.call("act", do="result", result=result)["result"], result)

    def test_calls_under_way_are_answered_when_the_server_dies(self):
        client = self.act()
        calls = [client.start_call("act", do="silent") for _ in range(20)]
        last = client.start_call("act", do="die")
        began = time.monotonic()
        for call in [*calls, last]:
            self.assert_failed(client.answer(call, 10), GONE)
        self.assertLess(time.monotonic() - began, mediation_case.AT_ONCE)
        self.again(client)
        # Nothing was sent a second time.
        self.assertEqual(sum(each.get("do") == "silent" for each in self.arrived_calls()), 20)
        self.assertEqual(sum(each.get("do") == "die" for each in self.arrived_calls()), 1)


class Requests(mediation_case.Case):
    """Requests of the server to its client."""

    def asked(self, client, method, params=None, identifier=0):
        said = client.call("act", do="ask", method=method, params=params or {}, id=identifier)
        return json.loads(session.words(said))

    def test_they_are_refused_at_once_unless_relayed(self):
        client = self.act()
        began = time.monotonic()
        for method in ("sampling/createMessage", "elicitation/create", "no/such", "tools/call", "tasks/get"):
            for identifier in (0, "x", 12345):
                with self.subTest(method):
                    heard = self.asked(client, method, identifier=identifier)
                    self.assertEqual(heard["error"]["code"], NO_METHOD)
                    self.assertEqual(heard["id"], identifier)
        self.assertLess(time.monotonic() - began, 5)
        self.assertEqual(client.heard, [])

    def test_a_ping_is_answered(self):
        self.assertEqual(self.asked(self.act(), "ping")["result"], {})

    def test_roots_come_from_the_operator_alone(self):
        client = self.act(initialize=False)
        client.initialize(capabilities={"roots": {"listChanged": True}})
        heard = self.asked(client, "roots/list")
        self.assertNotIn("of-the-agent", json.dumps(heard))
        self.assertTrue("error" in heard or heard["result"]["roots"] == [], heard)
        self.assertEqual([each for each in client.heard if each.get("method") == "roots/list"], [])

    def test_relayed_they_reach_the_agent_and_its_answer_the_server(self):
        client = self.act("--relay", "sampling,elicitation", initialize=False)
        client.initialize(capabilities={"sampling": {}, "elicitation": {"form": {}}})
        self.assertTrue({"sampling", "elicitation"} <= set(self.arrived()[0]["params"]["capabilities"]))
        for method in ("sampling/createMessage", "elicitation/create"):
            call = client.start_call("act", do="ask", method=method, params={"message": "m"}, id="of the server")
            request = client.receive()
            self.assertEqual(request["method"], method)
            self.assertEqual(request["params"], {"message": "m"})
            self.assertNotEqual(request["id"], "of the server")
            client.put(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"said": "yes"}}) + "\n")
            heard = json.loads(session.words(client.answer(call)))
            self.assertEqual((heard["id"], heard["result"]), ("of the server", {"said": "yes"}))

    def test_one_that_belongs_to_no_call_is_refused(self):
        client = self.act("--relay", "sampling", initialize=False)
        client.initialize(capabilities={"sampling": {}})
        self.assert_words(client.call("act", do="requests", count=3), "asked")
        time.sleep(0.5)
        # Those that came while the call was under way may have been relayed; all are answered or open.
        self.assertTrue(all(each["method"] == "sampling/createMessage" for each in client.heard), client.heard)
        self.assert_words(client.call("act", words="x"), "x")


if __name__ == "__main__":
    mediation_case.inside.main()
