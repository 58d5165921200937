"""Nothing inside reaches what no rule names, whatever it says to whom.

Every denial has its permitted twin in the same run. What counts is the wire: the scene's internet
answers on every address, and every packet that leaves the host is seen.
"""
import json
import os
import socket

import egress_case
import hello
import inside
import world

HERE = egress_case.PROGRAMS
PYTHON = ["/usr/bin/python3", "-B"]
FILES, CLOSED, ECHO = world.FILES, world.CLOSED, world.ECHO
ECHO_RULE = f"{FILES}:{ECHO}"


class Escapes(egress_case.Case):
    def agent(self, rules, name, *arguments, data=None, extra=()):
        """Runs one of the programs in agents/; returns what it printed, read as JSON."""
        done = self.run_with(rules, *PYTHON, os.path.join(HERE, name), *arguments, read=[HERE],
                             extra=extra, **({"input": data.encode(), "stdin": None} if data else {}))
        self.assertEqual(done.status, 0, done)
        return json.loads(done.out)

    def tries(self, rules, cases, extra=()):
        """{name: outcome} for {name: case}: see try_ways.py."""
        outcomes = self.agent(rules, "try_ways.py", data=json.dumps(list(cases.values())), extra=extra)
        return dict(zip(cases, outcomes, strict=True))

    def assert_all_refused(self, outcomes, but=()):
        gained = {name: outcome for name, outcome in outcomes.items()
                  if name not in but and not outcome.startswith("refused")}
        self.assertEqual(gained, {})

    # -- around the proxy --

    def test_around_the_proxy(self):
        port, arrived = self.host_listener()
        name = f"glove-egress-{os.getpid()}"
        listeners = []
        for suffix, kind in (("", socket.SOCK_STREAM), ("-d", socket.SOCK_DGRAM)):
            listener = socket.socket(socket.AF_UNIX, kind)
            self.addCleanup(listener.close)
            listener.bind(b"\0" + (name + suffix).encode())
            listeners.append(listener)
        listeners[0].listen()
        canaries = [[world.CANARY, ECHO], [world.CANARY6, ECHO], [world.ADDRESSES[FILES][0], ECHO],
                    ["127.0.0.1", port], ["::1", port], ["::ffff:127.0.0.1", port], [world.HOST, port],
                    [world.HOST6, port], [world.LAN, port], ["10.77.0.66", ECHO], ["169.254.169.254", 80],
                    ["0.0.0.0", port], ["255.255.255.255", 9], ["224.0.0.251", 5353]]
        with open("/etc/resolv.conf", encoding="utf-8") as file:
            resolvers = [line.split()[1] for line in file if line.startswith("nameserver")]
        self.assertEqual(resolvers, [world.RESOLVER])
        settings = {"canaries": canaries, "abstract": name,
                    "resolvers": [*resolvers, world.RESOLVER6, "127.0.0.1", "8.8.8.8"]}
        found = self.agent([ECHO_RULE], "around.py", json.dumps(settings))
        self.assert_all_refused(found)
        self.assertEqual(self.left(), [])
        self.assertEqual(arrived, [])
        # The twin: the same sandbox's permitted way, and the same listeners from the host.
        self.assertEqual(self.tries([ECHO_RULE], {"twin": ["echo", "connect", FILES, ECHO]}),
                         {"twin": "echo"})
        for address in ("127.0.0.1", "::1", world.HOST):
            with socket.create_connection((address, port)) as connection:
                connection.sendall(b"x")
                self.assertEqual(connection.recv(9), b"host:x")

    def test_no_rule_is_no_network(self):
        outcome = self.script([], "env | grep -i _proxy; cat /etc/hosts; "
                                  f"curl -sS --max-time 5 https://{FILES}/hello; "
                                  f"curl -sS --max-time 5 -x {egress_case.PROXY} https://{FILES}/hello")
        self.assertNotEqual(outcome.status, 0)
        self.assertNotIn("proxy", outcome.out.lower())
        self.assertNotIn("hello from", outcome.out)
        self.assertNotIn(FILES, outcome.out)
        self.assertEqual((self.left(), self.queries(), self.egress()), ([], [], []))

    def test_the_host_listens_on_nothing_more(self):
        """The way between inside and host is no TCP port that another user could find."""
        def listening():
            found = set()
            for table in ("tcp", "tcp6", "udp", "udp6"):
                with open(f"/proc/self/net/{table}", encoding="ascii") as file:
                    for line in list(file)[1:]:
                        fields = line.split()
                        if fields[3] in ("0A", "07"):
                            found.add((table, fields[1]))
            return found

        def abstract():
            with open("/proc/self/net/unix", encoding="utf-8") as file:
                return {fields[7] for line in file if len(fields := line.split()) > 7}
        before, names = listening(), abstract()
        process = self.place.start("sh", "-c", f"curl -sS http://{FILES}/hello; echo; read -r go",
                                   flags=self.flags(f"{FILES}:80"), stdin=-1, stdout=-1)
        self.addCleanup(inside.end, process)
        self.assertIn(b"hello", process.stdout.readline())
        self.assertEqual(listening() - before, set())
        self.assertEqual(abstract() - names, set())
        process.communicate(b"\n", timeout=20)
        self.assertEqual(process.returncode, 0)

    def test_the_hosts_names_are_not_told(self):
        done = self.script([FILES], "cat /etc/hosts /etc/resolv.conf; getent hosts secret-of-the-host;"
                                    " getent hosts files.open.example")
        self.assertNotIn("secret-of-the-host", done.all)
        self.assertNotIn(world.RESOLVER, done.all)
        self.assertIn(FILES, done.out)

    # -- the name service --

    def test_the_name_service_asks_nobody(self):
        secret = "c2VjcmV0LW9mLXRoZS1ob3N0"
        cases = {f"{name} {kind} {group} {transport}": [name, kind, group, transport]
                 for transport in ("udp", "tcp") for name, kind, group in (
                     (CLOSED, 1, 1), (CLOSED, 28, 1), (f"{secret}.{CLOSED}", 1, 1), (f"{secret}.{FILES}", 1, 1),
                     (f"{secret}.{CLOSED}", 16, 1), (FILES, 16, 1), (FILES, 255, 1), (FILES, 28, 1),
                     (FILES, 15, 1), (FILES, 65, 1), (FILES, 252, 1), (FILES, 1, 3), ("version.bind", 16, 3),
                     ("10.216.184.93.in-addr.arpa", 12, 1), ("", 2, 1), ("open.example", 1, 1),
                     ("localhost.example", 1, 1), (f"{secret}.{world.DEEP}", 16, 1),
                     (world.DEEP + "." + CLOSED, 1, 1), ("x" + world.DEEP, 1, 1),
                     (FILES.upper(), 1, 1), (FILES, 1, 1), (f"{secret}.{world.DEEP}", 1, 1))}
        answers = dict(zip(cases, self.agent([FILES, f".{world.DEEP}"], "ask_stub.py",
                                             data=json.dumps(list(cases.values()))), strict=True))
        for case, answer in answers.items():
            name, kind, group, _ = cases[case]
            known = name.lower() == FILES or name.endswith("." + world.DEEP)
            self.assertIsInstance(answer, list, case)
            if known and kind == 1 and group == 1:
                self.assertEqual(answer[0], 0, case)
                self.assertRegex(answer[1][0], r"^127\.64\.", case)
            else:
                self.assertEqual(answer[1], [], case)
                if not known:
                    self.assertIn(answer[0], (1, 3, 4, 5), case)
        self.assertEqual((self.queries(), self.left()), ([], []))
        self.assert_the_domain_is_asked_when_used(secret)

    def assert_the_domain_is_asked_when_used(self, secret):
        """The twin: a connection to a name of a permitted domain does ask the host's name server."""
        self.tries([f".{world.DEEP}:{ECHO}"], {"twin": ["echo", "connect", f"{secret}.{world.DEEP}", ECHO]})
        self.assertEqual({name for name, _ in self.queries()}, {f"{secret.lower()}.{world.DEEP}"})

    def test_refused_names_are_not_looked_up(self):
        cases = {way: ["echo", way, f"{way}.secret.{CLOSED}", ECHO] for way in ("connect", "socks", "direct")}
        cases["absolute"] = ["ask", f"GET http://absolute.secret.{CLOSED}/ HTTP/1.1\r\n"
                                    f"Host: absolute.secret.{CLOSED}\r\n\r\n", 1]
        cases["twin"] = ["echo", "connect", FILES, ECHO]
        found = self.tries([ECHO_RULE], cases)
        self.assertEqual(found.pop("twin"), "echo")
        self.assertIn(" 403", found.pop("absolute").split("\r\n")[0])
        self.assert_all_refused(found)
        self.assertEqual({name for name, _ in self.queries()}, {FILES})
        self.assert_refused(f"connect.secret.{CLOSED}:{ECHO}")
        self.assert_refused(f"socks.secret.{CLOSED}:{ECHO}")
        self.assert_refused(f"absolute.secret.{CLOSED}:80")
        self.assert_allowed(ECHO_RULE)

    # -- addresses that no name may lead to --

    def test_names_that_lead_home(self):
        _, arrived = self.host_listener(ECHO)
        labels = [*world.TRAPS, "alias"]
        rules = [f"{label}.trap.example:{ECHO}" for label in labels]
        cases = {f"{label} {way}": ["echo", way, f"{label}.trap.example", ECHO]
                 for label in labels for way in ("connect", "socks", "direct")}
        cases["twin"] = ["echo", "connect", FILES, ECHO]
        found = self.tries([*rules, ECHO_RULE], cases)
        self.assertEqual(found.pop("twin"), "echo")
        for way in ("connect", "socks", "direct"):  # to the good one of its addresses, or not at all
            self.assertIn(found.pop(f"mixed {way}").split(":")[0], ("echo", "refused"))
        self.assert_all_refused(found)
        self.assert_untouched()
        self.assertEqual(arrived, [])
        for label in labels:
            if label != "mixed":
                statuses = {status for _, status in self.egress(f"{label}.trap.example:{ECHO}")}
                self.assertTrue(statuses, label)
                self.assertNotIn("ok", statuses, label)

    def test_addresses_that_lead_home(self):
        """Literal addresses, under rules that name every address there is."""
        _, arrived = self.host_listener(ECHO)
        cases = {}
        for label, addresses in world.TRAPS.items():
            for address in addresses:
                if label != "mixed":
                    literal = f"[{address}]" if ":" in address else address
                    cases[f"{label} connect"] = ["echo", "connect", literal, ECHO]
                    cases[f"{label} socks"] = ["echo", "socks", address, ECHO]
                    cases[f"{label} socks-address"] = ["echo", "socks-address", address, ECHO]
        four, six = world.ADDRESSES[FILES]
        twins = {"four": ["echo", "connect", four, ECHO], "six": ["echo", "connect", f"[{six}]", ECHO],
                 "four socks": ["echo", "socks-address", four, ECHO],
                 "six socks": ["echo", "socks-address", six, ECHO]}
        found = self.tries([f"0.0.0.0/0:{ECHO}", f"::/0:{ECHO}"],
                           {**cases, **twins})
        self.assertEqual({name: found.pop(name) for name in twins}, dict.fromkeys(twins, "echo"))
        self.assert_all_refused(found)
        self.assert_untouched()
        self.assertEqual(arrived, [])

    def test_private_addresses_by_permission(self):
        """`allow-private` is the twin, and no wider than its rule."""
        found = self.tries([f"ten.trap.example:{ECHO},allow-private", f"home.trap.example:{ECHO}"], {
            "ten": ["echo", "connect", "ten.trap.example", ECHO],
            "ten direct": ["echo", "direct", "ten.trap.example", ECHO],
            "home": ["echo", "connect", "home.trap.example", ECHO],
            "literal": ["echo", "connect", "10.77.0.66", ECHO]})
        self.assertEqual((found.pop("ten"), found.pop("ten direct")), ("echo", "echo"))
        self.assert_all_refused(found)
        self.assert_reached_only(("10.77.0.66", ECHO))

    def test_names_that_change_their_mind(self):
        _, arrived = self.host_listener(ECHO)
        names = ("rebind.trap.example", "flip.trap.example")
        cases = {f"{name} {way} {turn}": ["echo", way, name, ECHO]
                 for name in names for way in ("connect", "socks", "direct") for turn in range(6)}
        found = self.tries([f"{name}:{ECHO}" for name in names], cases)
        self.assertIn("echo", found.values())
        self.assertEqual({outcome for outcome in found.values()
                          if outcome != "echo" and not outcome.startswith("refused")}, set())
        self.assert_untouched()
        self.assertEqual(arrived, [])

    def test_the_hosts_loopback(self):
        port, arrived = self.host_listener()
        other, untouched = self.host_listener()

        def cases(number):
            return {f"{name} {way}": ["echo", way, name, number] for way in ("connect", "socks")
                    for name in ("localhost", "127.0.0.1", "[::1]" if way == "connect" else "::1",
                                 "LOCALHOST", "localhost.", "127.1", "0.0.0.0", world.HOST)}
        self.assert_all_refused(self.tries([ECHO_RULE], cases(other)))
        self.assert_all_refused(self.tries([f"localhost:{port}"], cases(other)))
        found = self.tries([f"localhost:{port}"], cases(port))
        self.assertRegex(found["localhost connect"], "^got b'host:")
        self.assertRegex(found["localhost socks"], "^got b'host:")
        self.assertTrue(found[f"{world.HOST} connect"].startswith("refused"), found)
        self.assertTrue(found["0.0.0.0 connect"].startswith("refused"), found)
        self.assertEqual(untouched, [])
        self.assertTrue(set(arrived) <= {"::ffff:127.0.0.1", "::1"}, arrived)
        self.assertEqual(self.left(), [])

    def test_the_proxy_is_no_way_inwards(self):
        """Through the proxy neither its own port, nor the sandbox's loopback can be reached."""
        found = self.tries([ECHO_RULE], {
            **{f"{host} {port} {way}": ["echo", way, host, port] for way in ("connect", "socks")
               for host in ("localhost", "127.0.0.1", "127.0.0.53", "127.64.0.1", "127.64.0.2")
               for port in (61080, 53, ECHO)},
            "twin": ["echo", "connect", FILES, ECHO]})
        self.assertEqual(found.pop("twin"), "echo")
        self.assert_all_refused(found)

    # -- odd names --

    ODD = ["\0", f"{FILES}\0.{CLOSED}", f"{CLOSED}\0{FILES}", f"{FILES}%00.{CLOSED}", f"{CLOSED}%00.{FILES}",
           f"{CLOSED}%2e", f"{CLOSED}\r\n.{FILES}", f"{CLOSED}\n{FILES}", f"{CLOSED}\t{FILES}", f" {CLOSED}",
           f"{CLOSED} {FILES}", f"{FILES}@{CLOSED}", f"user:{FILES}@{CLOSED}", f"{CLOSED}#.{FILES}",
           f"{CLOSED}/.{FILES}", f"{CLOSED}\\.{FILES}", f"{CLOSED}?.{FILES}", f"{CLOSED};{FILES}",
           f"{CLOSED},{FILES}", f"{FILES}..", f".{FILES}", f"files..open.example", "", ".", "*", "*.open.example",
           "0x7f.0.0.1", "0x7f000001", "2130706433", "0177.0.0.1", "127.1", "127.0.1", "127.0.0.1.", "127.0.0.01",
           "127.0.0.256", "1.2.3.4.5", "[::ffff:127.0.0.1]", "[::ffff:5db8:d842]", "[::1%lo]", "[::1%25lo]",
           "[fe80::1%uplink]", "[::1", "::1]", "[127.0.0.1]", "[]", "[v1.x]", f"[{FILES}]", "1572395042",
           "0x5db8d842", "93.12114498", "0135.0270.0330.0102",
           "\xef\xac\x81les.open.example", "127\xe3\x80\x820\xe3\x80\x820\xe3\x80\x821",
           f"{CLOSED}\xc2\xad", f"files.open.example\xe2\x80\x8b.{CLOSED}", "\xff\xfe", "a" * 64 + ".open.example",
           ".".join(["a" * 49] * 5) + ".open.example", f"-{FILES}"]

    def test_odd_names(self):
        _, arrived = self.host_listener(ECHO)
        cases = {f"{way} {name!r}": ["echo", way, name, ECHO] for way in ("connect", "socks")
                 for name in self.ODD if not (way == "socks" and len(name) > 255)}
        twins = {"upper": FILES.upper(), "dot": FILES + ".", "plain": FILES,
                 "punycode": "xn--bcher-kva.open.example"}
        for twin, name in twins.items():
            for way in ("connect", "socks"):
                cases[f"{twin} {way}"] = ["echo", way, name, ECHO]
        cases["underscore"] = ["echo", "connect", "with_underscore.open.example", ECHO]
        found = self.tries([ECHO_RULE, f"xn--bcher-kva.open.example:{ECHO}",
                            f"with_underscore.open.example:{ECHO}"], cases)
        for twin in ("plain", "upper", "dot", "punycode"):
            for way in ("connect", "socks"):
                self.assertEqual(found.pop(f"{twin} {way}"), "echo", twin)
        self.assertEqual(found.pop("underscore"), "echo")
        self.assert_all_refused(found)
        self.assert_untouched()
        self.assertEqual(arrived, [])
        self.assertLessEqual({name for name, _ in self.queries()},
                             {FILES, "xn--bcher-kva.open.example", "with_underscore.open.example"})

    # -- HTTP --

    def served(self):
        return [(each["host"], each["target"], each["headers"]) for each in egress_case.ask("record")["requests"]
                if "host" in each]

    def test_requests_that_name_two_hosts(self):
        def get(url, *lines, version="HTTP/1.1"):
            return f"GET {url} {version}\r\n" + "".join(line + "\r\n" for line in lines) + "\r\n"
        good = get(f"http://{FILES}/good", f"Host: {FILES}")
        bad = get(f"http://{CLOSED}/bad", f"Host: {CLOSED}")
        cases = {
            "twin": good,
            "host differs": get(f"http://{FILES}/", f"Host: {CLOSED}"),
            "closed": bad, "url differs": get(f"http://{CLOSED}/bad", f"Host: {FILES}"),
            "two hosts": get(f"http://{FILES}/", f"Host: {FILES}", f"Host: {CLOSED}"),
            "folded host": get(f"http://{FILES}/", f"Host: {FILES}", f"X: 1\r\n Host: {CLOSED}"),
            "spaced host": get(f"http://{FILES}/", f"Host : {CLOSED}"),
            "bare newline": get(f"http://{FILES}/", f"X: 1\nHost: {CLOSED}\nY: 2"),
            "carriage return": get(f"http://{FILES}/", f"X: 1\rHost: {CLOSED}"),
            "NUL": get(f"http://{FILES}/", f"X: 1\0\r\nHost: {CLOSED}"),
            "user": get(f"http://{FILES}@{CLOSED}/bad"), "user at": get(f"http://{CLOSED}:80@{FILES}/", ""),
            "backslash": get(f"http://{CLOSED}\\@{FILES}/bad"), "no slash": get(f"http://{CLOSED}?@{FILES}/bad"),
            "second": good + bad, "second hidden": good.replace("\r\n\r\n", "\r\nContent-Length: 0\r\n\r\n") + bad,
            "length and chunks": f"POST http://{FILES}/echo HTTP/1.1\r\nHost: {FILES}\r\nContent-Length: 6\r\n"
                                 f"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{bad}",
            "two lengths": f"POST http://{FILES}/echo HTTP/1.1\r\nHost: {FILES}\r\nContent-Length: 0\r\n"
                           f"Content-Length: {len(bad)}\r\n\r\n{bad}",
            "odd length": f"POST http://{FILES}/echo HTTP/1.1\r\nHost: {FILES}\r\nContent-Length: +0\r\n\r\n{bad}",
            "odd coding": f"POST http://{FILES}/echo HTTP/1.1\r\nHost: {FILES}\r\nTransfer-Encoding: xchunked\r\n"
                          f"\r\n0\r\n\r\n{bad}",
            "spaced coding": f"POST http://{FILES}/echo HTTP/1.1\r\nHost: {FILES}\r\nTransfer-Encoding : chunked"
                             f"\r\nContent-Length: {len(bad)}\r\n\r\n{bad}",
            "after chunks": f"POST http://{FILES}/echo HTTP/1.1\r\nHost: {FILES}\r\nTransfer-Encoding: chunked\r\n"
                            f"\r\n1;x=\"\r\n\"\r\na\r\n0\r\n\r\n{bad}",
            "upgrade": get(f"http://{FILES}/", f"Host: {FILES}", "Connection: Upgrade", "Upgrade: h2c") + bad,
            "origin form": get("/hello", f"Host: {FILES}"), "asterisk": "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
            "other scheme": get(f"ftp://{FILES}/", f"Host: {FILES}"),
            "secure scheme": get(f"https://{FILES}/", f"Host: {FILES}"),
            "file": get("file:///etc/hosts"), "no version": f"GET http://{CLOSED}/bad\r\n\r\n",
            "preface": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "garbage": "\x16\x03\x01\x00\x05hello" * 20,
            "long line": get(f"http://{FILES}/" + "a" * 200000), "socks4": "\4\1\0\x50\x5d\xb8\xd8\x42\0",
            "many fields": get(f"http://{FILES}/", *[f"X{n}: {'y' * 100}" for n in range(3000)]),
            "port 0": get(f"http://{FILES}:0/", f"Host: {FILES}:0"),
            "port 65616": get(f"http://{FILES}:65616/", f"Host: {FILES}"),
            "port -": get(f"http://{FILES}:+80/", f"Host: {FILES}"),
        }
        found = self.tries([f"{FILES}:80"], {name: ["ask", text, 2 if "second" in name else 1]
                                             for name, text in cases.items()})
        self.assertTrue(found["twin"].startswith("HTTP/1.1 404"), found["twin"])  # the server's own answer
        self.assert_untouched()
        served = self.served()
        self.assertIn([FILES], [host for host, _, _ in served])
        for host, target, _ in served:
            self.assertEqual(host, [FILES], target)
            self.assertNotIn("bad", target)
        self.assertIn("403", found["closed"].split("\r\n")[0])
        for name in ("url differs", "no version", "host differs", "two hosts", "origin form", "other scheme", "file", "port 0", "port 65616", "port -", "garbage"):
            self.assertFalse(found[name].startswith(("HTTP/1.1 2", "HTTP/1.1 404")), (name, found[name]))
        self.assertFalse(found["socks4"].startswith("\0\x5a"))
        self.assert_refused(f"{CLOSED}:80")
        self.assert_allowed(f"{FILES}:80")

    def test_what_is_for_the_proxy_stays_there(self):
        found = self.tries([f"{FILES}:80"], {"one": ["ask", (
            f"GET http://{FILES}/headers HTTP/1.1\r\nHost: {FILES}\r\nProxy-Authorization: Basic c2VjcmV0\r\n"
            "Proxy-Connection: keep-alive\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nX-End: 2\r\n\r\n"), 1]})
        self.assertIn(" 200 ", found["one"].split("\r\n")[0])
        ((_, target, headers),) = self.served()
        self.assertEqual(target, "/headers")
        self.assertIn("x-end", headers)
        for name in ("proxy-authorization", "proxy-connection", "x-hop", "via", "x-forwarded-for", "forwarded"):
            self.assertNotIn(name, headers)

    def test_other_commands_of_socks(self):
        found = self.agent([ECHO_RULE], "socks_commands.py", FILES, str(ECHO))
        self.assertEqual(found.pop("connect"), "gained")
        self.assert_all_refused(found)
        self.assert_untouched()

    # -- TLS --

    def test_server_names(self):
        four, _ = world.ADDRESSES[FILES]
        name, closed = FILES.encode(), CLOSED.encode()
        right = {"right": hello.greeting(name), "upper": hello.greeting(name.upper()),
                 "in pieces": hello.greeting(name, size=20),
                 "large": hello.greeting(name, extra=[(21, b"\0" * 9000)])}
        right["by byte"] = list(right["right"])
        wrong = {
            "other": hello.greeting(closed), "front": hello.greeting(world.FRONT.encode()), "none": hello.greeting(),
            "other in pieces": hello.greeting(closed, size=20), "empty": hello.greeting(b""),
            "two names": hello.greeting(name, closed), "two names, turned": hello.greeting(closed, name),
            "two extensions": hello.greeting(name, extra=[hello.names(closed)]),
            "NUL": hello.greeting(name + b"\0." + closed), "NUL, turned": hello.greeting(closed + b"\0." + name),
            "longer": hello.greeting(name + b".closed.example"), "address": hello.greeting(four.encode()),
            "kind": hello.records(hello.hello(hello.names(name, kind=1))).decode("latin-1"),
            "encrypted": hello.greeting(name, extra=[hello.ENCRYPTED]),
            "cut": hello.records(hello.hello((0, b"\0\x20\0\0\x12" + name))).decode("latin-1"),
            "plain": f"GET /hello HTTP/1.1\r\nHost: {FILES}\r\n\r\n", "old": "\x80\x2e\x01\x03\x01" + "\0" * 44,
        }
        cases = {f"{kind} {way}": ["tls", way, FILES, 443, data] for kind, data in {**right, **wrong}.items()
                 for way in ("connect", "socks", "direct")}
        for way in ("connect", "socks", "direct"):  # TLS shows itself on any port; the echo is its twin
            for kind in ("right", "in pieces"):
                cases[f"{kind} elsewhere {way}"] = ["tls", way, FILES, ECHO, right[kind]]
            for kind in ("other", "other in pieces", "none", "encrypted"):
                cases[f"{kind} elsewhere {way}"] = ["tls", way, FILES, ECHO, wrong[kind]]
        found = self.tries([FILES, ECHO_RULE], cases)
        for way in ("connect", "socks", "direct"):
            for kind in ("right", "in pieces"):
                self.assertRegex(found.pop(f"{kind} elsewhere {way}"), "^got 160301", kind)
        for kind in right:
            for way in ("connect", "socks", "direct"):
                self.assertRegex(found.pop(f"{kind} {way}"), "^got 16030", kind)
        for case, outcome in found.items():
            self.assertRegex(outcome, "^(refused|got $|got 15)", case)  # an alert at most
        self.assert_untouched()
        record = egress_case.ask("record")
        self.assertEqual([each for each in record["requests"] if each.get("sni") not in (None, FILES)], [])
        self.assertTrue(self.egress(f"{FILES}:443"))

    def test_any_server_name_by_permission(self):
        data = {"other": hello.greeting(CLOSED.encode()), "none": hello.greeting(),
                "right": hello.greeting(FILES.encode())}
        cases = {f"{kind} {way}": ["tls", way, FILES, 443, text] for kind, text in data.items()
                 for way in ("connect", "socks", "direct")}
        found = self.tries([f"{FILES},any-server-name"], cases)
        for case, outcome in found.items():
            self.assertRegex(outcome, "^got 16030", case)
        self.assert_untouched()

    def test_fronting(self):
        """Two names, one address: the name that was asked for is the name that is greeted."""
        curl = "curl -sS --max-time 10"
        address = world.ADDRESSES[FILES][0]
        done = self.script([FILES, world.FRONT], f"""
            {curl} https://{FILES}/hello
            {curl} https://{world.FRONT}/hello
            {curl} --connect-to {FILES}:443:{world.FRONT}:443 https://{FILES}/hello && echo FRONTED
            {curl} --connect-to {CLOSED}:443:{FILES}:443 https://{CLOSED}/hello && echo FRONTED
            {curl} --noproxy '*' --resolve {CLOSED}:443:$(getent ahostsv4 {FILES} | head -1 | cut -d' ' -f1) \
                https://{CLOSED}/hello && echo FRONTED
            {curl} --resolve {CLOSED}:443:{address} https://{CLOSED}/hello && echo FRONTED
            true""")
        self.assertIn(f"hello from {FILES}\nhello from {world.FRONT}\n", done.out)
        self.assertNotIn("FRONTED", done.out, done)
        self.assertEqual([host for host, _, _ in self.served()], [[FILES], [world.FRONT]])
        self.assert_untouched()

    # -- the helper inside --

    def test_the_helper_cannot_be_read(self):
        found = self.agent([FILES], "meddle.py", "look")
        self.assertGreaterEqual(len(found), 2, "the first process and the helper")
        for pid, outcomes in found.items():
            self.assert_all_refused({f"{pid} {what}": outcome for what, outcome in outcomes.items()})

    def test_an_ended_helper_ends_the_network_only(self):
        for word in ("KILL", "STOP"):
            done = self.script([FILES, f"{FILES}:80"], f"""
                curl -sS --max-time 10 https://{FILES}/hello
                /usr/bin/python3 -B {HERE}/meddle.py {word} >told
                curl -sS --max-time 3 https://{FILES}/hello
                curl -sS --max-time 3 http://{CLOSED}/hello && echo ESCAPED
                echo still here; exit 7""", read=[HERE], timeout=60)
            self.assertEqual(done.status, 7, done)
            self.assertTrue(done.out.startswith(f"hello from {FILES}\n"), done)
            self.assertTrue(done.out.endswith("still here\n"), done)
            self.assertNotIn("ESCAPED", done.out, done)
            self.assert_untouched()


if __name__ == "__main__":
    inside.main()
