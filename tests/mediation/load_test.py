"""Much at once, and nonsense without end: everything is answered, nothing is mixed up, memory is bounded."""
import json
import os
import random
import time

import inside
import mediation_case
import session

ROUNDS = 200_000 if inside.SOAK else 15_000
CALL = {"jsonrpc": "2.0", "id": "nonsense", "method": "tools/call",
        "params": {"name": "act", "arguments": {"words": "a\u2028b", "list": [1, {"a": None}], "n": -1.5e3},
                   "_meta": {"progressToken": "t"}}}
ANSWER = {"jsonrpc": "2.0", "id": 424242, "result": {
    "content": [{"type": "text", "text": "é"}], "isError": False, "structuredContent": {"a": [1, None]}}}
# What a mutation puts in: what readers disagree about.
PIECES = [b"\0", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"\r", b"\x0b", b'"', b"\\", b"{",
          b"}", b"[", b"]", b",", b":", b"null", b"1e999", b"-0", b"00", b"9007199254740993", b'"id":1,',
          b'"method":"ping",', b'"name":"other",', b"/*", b"//", b"\xef\xbb\xbf", b"NaN", b"\xe2\x80\xa8",
          b"," * 50, b"[" * 200]


def mutated(chance, line):
    line = bytearray(line)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(line) + 1)
        kind = chance.randrange(4)
        if kind == 0:
            line[at:at + chance.randint(1, 8)] = b""
        elif kind == 1:
            line[at:at] = chance.choice(PIECES)
        elif kind == 2 and at < len(line):
            line[at] = chance.randrange(256)
        else:
            begin = chance.randrange(len(line) + 1)
            line[at:at] = line[begin:begin + chance.randint(1, 40)]
    return bytes(line).replace(b"\n", b" ")


def once(pairs):
    """An object in which no name stands twice."""
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name twice")
    return dict(pairs)


def called(line):
    """The arguments that a line calls `act` with, or None when it is no such call."""
    try:
        message = json.loads(line.decode(), object_pairs_hook=once, parse_constant=int)
        if message["method"] == "tools/call" and message["params"]["name"] == "act":
            return message["params"].get("arguments", {})
    except (ValueError, KeyError, TypeError):
        pass
    return None


class Nonsense(mediation_case.Case):
    def test_of_an_agent(self):
        """What reaches the server is what a strict reader would make of the line, and nothing else."""
        chance = random.Random(11)
        client = self.act(allow=["a.act"])
        sound = json.dumps(CALL).encode()
        meant = []
        for number in range(ROUNDS):
            line = mutated(chance, sound)
            meant += [wanted] if (wanted := called(line)) is not None else []
            client.put(line + b"\n")
            if number % 20 == 0:  # a hundred in a row would be enough of it
                client.heard.clear()
                self.assertEqual(client.request("ping")["result"], {})
        self.assert_words(client.call("act", words="on"), "on")
        meant.append({"words": "on"})
        found = self.arrived("tools/call")
        self.assertGreater(len(found), ROUNDS // 300)  # most have an id that is open, or none
        remaining = iter(meant)
        for each in found:
            self.assertEqual(each["params"]["name"], "act")
            self.assertLessEqual(set(each["params"]), {"name", "arguments", "_meta"})
            self.assertTrue(any(wanted == each["params"].get("arguments", {}) for wanted in remaining), each)
        self.assertEqual({tool for tool, status in self.calls_on_record() if status == "pending"}, {"a.act"})
        self.assertEqual(len(found), sum(status == "pending" for _, status in self.calls_on_record()))

    def test_of_a_server(self):
        """Each call is answered at once, whatever its answer was, and what the agent gets is a message."""
        chance = random.Random(12)
        client = self.act("--call-timeout", "1s")
        sound = json.dumps(ANSWER)
        self.assertEqual(client.call("act", do="put", text=sound + "\n")["result"], ANSWER["result"])
        for _ in range(60 if not inside.SOAK else 600):
            line = mutated(chance, sound.encode())
            said = client.call("act", do="put", text=line.decode("latin-1") + "\n")
            self.assertTrue("error" in said or isinstance(said["result"], dict), said)
            if self.gone(said):
                client.close()
                client = self.act("--call-timeout", "1s")
        self.assertEqual([each for each in client.heard if "method" not in each], [])

    @staticmethod
    def gone(said):
        return said.get("error", {}).get("code") == -31001 or said.get("error", {}).get("code") == -31004


class Load(mediation_case.Case):
    def test_many_calls_are_each_answered_with_their_own(self):
        clients = [self.act() for _ in range(3)]
        for _ in range(4):
            calls = [(client, client.start_call("act", words=f"{number}-{at}"), f"{number}-{at}")
                     for at in range(200) for number, client in enumerate(clients)]
            for client, call, words in calls:
                self.assert_words(client.answer(call), words)
        self.assertEqual(self.calls_on_record().count(("a.act", "ok")), 2400)

    def test_large_messages_at_once(self):
        client = self.act()
        for _ in range(3):
            calls = [(client.start_call("act", words=f"{at}" + "x" * (1 << 20)), at) for at in range(8)]
            for call, at in calls:
                self.assert_words(client.answer(call), f"{at}" + "x" * (1 << 20))

    def mediator(self, client):
        return [pid for pid in [client.process.pid, *inside.descendants(client.process.pid)]
                if mediation_case.name_of(pid) in mediation_case.MEDIATORS]

    def test_a_server_that_does_not_read_costs_bounded_memory(self):
        honest = [*mediation_case.PYTHON, os.path.join(mediation_case.HERE, "actor.py")]
        client = self.serve(*self.upstream("a", *self.actor()), *self.upstream("b", *honest),
                            "--allow", "a.*", "--allow", "b.*", "--call-timeout", "20s")
        self.assert_words(client.call("a__act", do="deaf"), "deaf")
        calls = [client.start_call("a__act", words="x" * (1 << 20)) for _ in range(60)]
        self.assert_words(client.call("b__act", words="on"), "on")
        self.assertLess(max(inside.resident_kib(pid) for pid in self.mediator(client)), 200 * 1024)
        refused = [each for each in client.heard if "error" in each]
        self.assertGreater(len(refused), 10)
        for call in calls:
            self.assert_not_done(client.answer(call, 30))

    def test_one_who_does_not_read_costs_bounded_memory_and_no_answer(self):
        client = self.act()
        call = client.start_call("act", 1, do="progress", steps=1000, pause=0, words="x" * 100_000)  # 100 MB
        time.sleep(5)
        self.assertLess(max(inside.resident_kib(pid) for pid in self.mediator(client)), 120 * 1024)
        self.assertEqual(session.words(client.answer(call)), "x" * 100_000)
        self.assertGreater(len(client.heard), 100)  # news may be dropped
        self.assert_words(client.call("act", words="on"), "on")

    def test_no_memory_is_lost(self):
        client = self.act()

        def work():
            for _ in range(5):
                calls = [client.start_call("act", token, words="x" * 2000) for token in range(100)]
                for call in calls:
                    client.answer(call)
            client.call("act", words="x" * (4 << 20))
            client.heard.clear()
            return max(inside.resident_kib(pid) for pid in self.mediator(client))
        work()
        before = work()
        for _ in range(20 if inside.SOAK else 5):
            after = work()
        self.assertLess(after - before, 4096)

    def test_agents_that_come_and_go_leave_nothing(self):
        self.place.verb = "run"
        name = self.place.put("session.py", "")
        with open(os.path.join(mediation_case.HERE, "session.py"), encoding="utf-8") as source, \
                open(name, "w", encoding="utf-8") as file:
            file.write(source.read())
        self.place.put("agent.py", """
import session
for number in range(300):
    client = session.Session(path="/run/glove/mcp.sock")
    client.initialize()
    assert session.words(client.call("a__act", words=str(number))) == str(number)
    if number % 3 == 0:
        client.start_call("a__act", do="silent")
    client.close()
client = session.Session(path="/run/glove/mcp.sock")
client.initialize()
print(session.words(client.call("a__act", words="the last")))
""")
        done = self.place.run(*mediation_case.PYTHON, "agent.py",
                              flags=[*self.upstream("a", *self.actor()), "--allow", "a.*"])
        self.assertEqual((done.returncode, done.stdout), (0, b"the last\n"), done.stderr)
        self.assertTrue(inside.wait_until(lambda: not inside.marked(self.arrived_file), 5))


if __name__ == "__main__":
    inside.main()
