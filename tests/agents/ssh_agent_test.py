"""What an agent has of the caller's ssh agent with --ssh-agent: signatures of one key, and no more.

A real ssh-agent with two keys stands outside. Each denial stands beside its twin: the same program
bare, or the same program doing what is allowed.
"""
import glob
import json
import os
import pwd
import socket
import subprocess

import inside

# Speaks the protocol by itself. `say` sends bytes and returns what comes back, or b"" at the end.
CLIENT = r"""
import os, socket, struct, sys, time
def text(b): return struct.pack('>I', len(b)) + b
def frame(b): return struct.pack('>I', len(b)) + b
def connect(path=None):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect(path or os.environ['SSH_AUTH_SOCK'])
    return s
def receive(s):
    out = b''
    while len(out) < 4 or len(out) < 4 + struct.unpack('>I', out[:4])[0]:
        try:
            more = s.recv(65536)
        except ConnectionResetError:
            return b''
        if not more: return b''
        out += more
    return out[4:]
def say(b, s=None):
    s = s or connect()
    try:
        s.sendall(b)
    except (BrokenPipeError, ConnectionResetError):
        return b''
    return receive(s)
def keys(answer):
    count, rest, out = struct.unpack('>I', answer[1:5])[0], answer[5:], []
    for _ in range(count):
        size = struct.unpack('>I', rest[:4])[0]
        out.append(rest[4:4 + size])
        rest = rest[4 + size:]
        rest = rest[4 + struct.unpack('>I', rest[:4])[0]:]
    return out
LIST = frame(b'\x0b')
FAILURE = b'\x05'
def sign(key, data=b'data', flags=0): return frame(b'\x0d' + text(key) + text(data) + struct.pack('>I', flags))
"""


class SshAgent(inside.Case):
    def setUp(self):
        super().setUp()
        self.need("ssh-agent", "ssh-add", "ssh-keygen", "git")
        self.keys = self.place.folder("keys")
        self.socket = self.place.path("agent.sock")
        agent = subprocess.Popen(["ssh-agent", "-D", "-a", self.socket], stdout=subprocess.DEVNULL,
                                 env=self.place.environment)
        self.addCleanup(agent.wait)
        self.addCleanup(agent.terminate)
        self.assertTrue(inside.wait_until(lambda: os.path.exists(self.socket)))
        self.place.environment["SSH_AUTH_SOCK"] = self.socket
        self.fingerprint = {}
        for name in ("first", "second"):
            key = os.path.join(self.keys, name)
            self.bare("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"{name} key", "-f", key)
            self.bare("ssh-add", "-q", key)
            self.fingerprint[name] = self.bare("ssh-keygen", "-l", "-f", key).split()[1]
            with open(key + ".pub", encoding="utf-8") as file:
                self.place.put(name + ".pub", file.read())
        self.first = ["--ssh-agent", self.fingerprint["first"]]

    def bare(self, *command, status=0):
        done = self.place.bare(*command)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout.decode()

    def refused(self, *flags, words):
        done = self.place.run("true", flags=flags)
        self.assertEqual(done.returncode, 2, done.stderr)
        for each in words:
            self.assertIn(each, done.stderr.decode())

    def client(self, script, flags=None):
        return self.inside("python3", "-c", CLIENT + script, flags=flags or self.first)

    def records(self):
        found = []
        for name in glob.glob(os.path.join(self.place.state, "glove/audit/*.jsonl")):
            with open(name, encoding="utf-8") as file:
                found += [line for line in map(json.loads, file) if line["action"] == "ssh_sign"]
        return found

    # -- which key

    def test_one_key_is_shown(self):
        out = self.inside("ssh-add", "-l", flags=self.first)
        self.assertIn(self.fingerprint["first"], out)
        self.assertNotIn(self.fingerprint["second"], out)
        both = self.bare("ssh-add", "-l")
        self.assertIn(self.fingerprint["second"], both)
        self.assertIn(self.fingerprint["second"],
                      self.inside("ssh-add", "-l", flags=["--ssh-agent=second key"]))

    def test_without_the_option_there_is_no_agent(self):
        done = self.place.run("sh", "-c", 'echo "[$SSH_AUTH_SOCK]"; ls -A /run; ssh-add -l')
        self.assertEqual(done.stdout, b"[]\n")
        self.assertNotEqual(done.returncode, 0)

    def test_a_choice_that_is_none_is_refused_with_the_list(self):
        both = list(self.fingerprint.values())
        self.refused("--ssh-agent", words=["more than one", *both, "first key"])
        self.refused("--ssh-agent", "third", words=["no such key", *both])
        self.refused(*self.first, "--net", "sealed", words=["--ssh-agent and --net sealed"])
        self.refused(*self.first, "--env", "SSH_AUTH_SOCK=/x", words=["is set by Glove"])
        self.bare("ssh-add", "-q", "-d", os.path.join(self.keys, "second.pub"))
        self.assertIn(self.fingerprint["first"], self.inside("ssh-add", "-l", flags=["--ssh-agent"]))
        self.bare("ssh-add", "-q", "-D")
        self.refused("--ssh-agent", words=["holds no key"])

    def test_an_agent_that_cannot_be_used_is_refused(self):
        plain = os.path.join(self.keys, "first.pub")
        self.place.environment["SSH_AUTH_SOCK"] = plain
        done = self.place.run("true", flags=["--ssh-agent"])
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"is not a socket", done.stderr)
        self.place.environment["SSH_AUTH_SOCK"] = "relative"
        self.refused("--ssh-agent", words=["no absolute path"])
        del self.place.environment["SSH_AUTH_SOCK"]
        self.refused("--ssh-agent", words=["SSH_AUTH_SOCK is not set"])
        if os.getuid() != 0:
            return
        os.chown(self.socket, 12345, -1)  # only root can make another's socket
        self.place.environment["SSH_AUTH_SOCK"] = self.socket
        done = self.place.run("true", flags=self.first)
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"belongs to user 12345", done.stderr)

    # -- what it may do

    def test_the_agent_cannot_be_changed(self):
        work = r"""
            export SSH_ASKPASS=$PWD/ask SSH_ASKPASS_REQUIRE=force
            printf '#!/bin/sh\necho secret\n' >ask; chmod +x ask
            ssh-keygen -q -t ed25519 -N '' -f own
            for try in '-D' '-d first.pub' 'own' '-x' '-X' '-s /usr/lib/none.so'; do
                if ssh-add $try </dev/null >/dev/null 2>&1; then echo "worked: $try"; else echo refused; fi
            done
            ssh-add -l >/dev/null && echo still there
            """
        out = self.inside("sh", "-c", work, flags=self.first)
        self.assertEqual(out, "refused\n" * 6 + "still there\n")
        both = self.bare("ssh-add", "-l")
        self.assertEqual(len(both.splitlines()), 2)
        # The twins.
        self.bare("ssh-add", "-q", os.path.join(self.place.workspace, "own"))
        self.bare("ssh-add", "-q", "-d", "first.pub")
        self.bare("ssh-add", "-q", "-D")
        self.bare("ssh-add", "-l", status=1)

    def test_files_are_signed_with_the_key_and_no_other(self):
        self.place.put("text", "to be signed\n")
        sign = ["ssh-keygen", "-q", "-Y", "sign", "-n", "file", "-f"]
        self.inside(*sign, "first.pub", "text", flags=self.first)
        with open(os.path.join(self.place.workspace, "first.pub"), encoding="utf-8") as file:
            self.place.put("allowed", "me@example.org " + file.read())
        check = "ssh-keygen -Y verify -f allowed -I me@example.org -n file -s text.sig <text"
        self.assertIn('Good "file" signature', self.bare("sh", "-c", check))
        os.unlink(os.path.join(self.place.workspace, "text.sig"))
        done = self.place.run(*sign, "second.pub", "text", flags=self.first)
        self.assertNotEqual(done.returncode, 0)
        self.assertFalse(os.path.exists(os.path.join(self.place.workspace, "text.sig")))
        self.bare(*sign, "second.pub", "text")  # the twin
        self.assertTrue(os.path.exists(os.path.join(self.place.workspace, "text.sig")))

    def test_commits_are_signed(self):
        work = r"""
            export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=c
            export GIT_COMMITTER_EMAIL=c@example.org
            git init -q repo; cd repo
            git config gpg.format ssh; git config user.signingkey "$PWD/../first.pub"
            git commit -q -S --allow-empty -m signed
            echo "c@example.org $(cat ../first.pub)" >../allowed
            git config gpg.ssh.allowedSignersFile "$PWD/../allowed"
            git verify-commit HEAD 2>&1
            """
        out = self.inside("sh", "-euc", work, flags=self.first)
        self.assertIn('Good "git" signature', out)

    def test_rsa_keys_are_signed_with_the_hash_that_is_asked_for(self):
        key = os.path.join(self.keys, "rsa")
        self.bare("ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-C", "rsa key", "-f", key)
        self.bare("ssh-add", "-q", key)
        out = self.client(r"""
key = keys(say(LIST))[0]
for flags in (0, 2, 4, 6, 1, 8, 2**31):
    answer = say(sign(key, b'data', flags))
    kind = answer[9:9 + struct.unpack('>I', answer[5:9])[0]] if answer[:1] == b'\x0e' else answer
    print(flags, kind)
""", flags=["--ssh-agent", "rsa key"])
        lines = out.splitlines()
        self.assertIn("2 b'rsa-sha2-256'", lines)
        self.assertIn("4 b'rsa-sha2-512'", lines)
        for flags in (1, 8, 2**31):
            self.assertIn(f"{flags} b'\\x05'", lines)

    def test_a_login_through_an_allowed_destination(self):
        self.need("ssh", "sshd")
        host, settings = os.path.join(self.keys, "host"), self.place.path("sshd.conf")
        self.bare("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", host)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with open(settings, "w", encoding="utf-8") as file:
            file.write(f"HostKey {host}\nAuthorizedKeysFile {self.keys}/first.pub\nPidFile none\nUsePAM no\n"
                       "StrictModes no\nPasswordAuthentication no\n"
                       f"ListenAddress 127.0.0.1:{port}\n")
        if os.getuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # sshd of root asks for it
        server = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", settings], stderr=subprocess.PIPE)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        self.assertIn(b"listening", server.stderr.readline())
        user = pwd.getpwuid(os.getuid()).pw_name
        login = ["ssh", "-F", "/dev/null", "-p", str(port), "-o", "StrictHostKeyChecking=no", "-o", "BatchMode=yes",
                 "-o", "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes"]
        allowed = ["--egress-allow", f"localhost:{port}"]
        out = self.inside(*login, "-i", "first.pub", f"{user}@localhost", "echo in", flags=self.first + allowed)
        self.assertEqual(out, "in\n")
        self.assertEqual([line["status"] for line in self.records()], ["pending", "ok"])
        # Without the agent, and with the other key, nobody is let in.
        self.inside(*login, "-i", "first.pub", f"{user}@localhost", "echo in", flags=allowed, status=255)
        self.inside(*login, "-i", "second.pub", f"{user}@localhost", "echo in",
                    flags=["--ssh-agent", "second key", *allowed], status=255)

    # -- what it may not say

    def test_everything_else_is_answered_with_failure(self):
        with open(os.path.join(self.place.workspace, "second.pub"), encoding="utf-8") as file:
            other = file.read().split()[1]
        out = self.client(rf"""
import base64
key, other = keys(say(LIST))[0], base64.b64decode('{other}')
def shown(name, answer): print(name, {{b'': 'closed', FAILURE: 'failure', b'\x0e': 'signed'}}.get(answer if answer in (b'', FAILURE) else answer[:1], answer))
for kind in (0, 1, 2, 3, 4, 5, 6, 9, 10, 12, 14, *range(15, 40), 200, 255):
    answer = say(frame(bytes([kind])) )
    if answer != FAILURE: print('type', kind, answer)
    answer = say(frame(bytes([kind]) + text(key) + text(b'x') + bytes(4)))
    if answer != FAILURE: print('long type', kind, answer)
shown('session-bind', say(frame(b'\x1b' + text(b'session-bind@openssh.com') + text(key))))
shown('other key', say(sign(other)))
shown('no key', say(sign(b'')))
shown('prefix', say(sign(key[:-1])))
shown('longer', say(sign(key + b'x')))
shown('no flags', say(frame(b'\x0d' + text(key) + text(b'x'))))
shown('trailing', say(frame(b'\x0d' + text(key) + text(b'x') + bytes(5))))
shown('long length', say(frame(b'\x0d' + struct.pack('>I', 2**32 - 1) + key)))
shown('list and more', say(frame(b'\x0b\x00')))
shown('empty frame', say(frame(b'')))
shown('too long', say(struct.pack('>I', 256 * 1024 + 1) + b'\x0b'))
shown('huge', say(struct.pack('>I', 2**32 - 1)))
shown('allowed', say(sign(key)))
shown('largest', say(sign(key, bytes(250 * 1024))))
""")
        self.assertEqual(out, "".join(f"{name} failure\n" for name in (
            "session-bind", "other key", "no key", "prefix", "longer", "no flags", "trailing", "long length",
            "list and more")) + "empty frame closed\ntoo long closed\nhuge closed\n"
            "allowed signed\nlargest signed\n")

    def test_pieces_and_many_requests_of_one_connection(self):
        out = self.client(r"""
s = connect()
for byte in LIST: s.send(bytes([byte]))
key = keys(receive(s))[0]
s.sendall(LIST * 3 + sign(key) + frame(b'\x13'))
kinds = []
got = b''
while len(kinds) < 5:
    got += s.recv(65536)
    while len(got) >= 4 and len(got) >= 4 + struct.unpack('>I', got[:4])[0]:
        size = struct.unpack('>I', got[:4])[0]
        kinds.append(got[4]); got = got[4 + size:]
print(kinds)
""")
        self.assertEqual(out, "[12, 12, 12, 14, 5]\n")

    def test_connections_are_bounded_and_those_over_wait(self):
        out = self.client(r"""
held = [connect() for _ in range(16)]
print(all(say(LIST, s)[:1] == b'\x0c' for s in held))
late = connect()
late.sendall(LIST)
late.settimeout(2)
try:
    print(late.recv(10))
except TimeoutError:
    print('waits')
held.pop().close()
late.settimeout(60)
print(receive(late)[:1])
""")
        self.assertEqual(out, "True\nwaits\nb'\\x0c'\n")

    def test_no_descriptor_comes_out(self):
        out = self.client(r"""
r, w = os.pipe()
s = connect()
socket.send_fds(s, [LIST], [w])
print(receive(s)[:1])
os.close(w)
print(os.read(r, 1))
""")
        self.assertEqual(out, "b'\\x0c'\nb''\n")

    def test_a_flood_that_is_never_read_ends_with_the_run(self):
        out = self.client(r"""
full, held = 0, []
for _ in range(10000):
    s = socket.socket(socket.AF_UNIX)
    s.setblocking(False)
    try:
        s.connect(os.environ['SSH_AUTH_SOCK'])
        s.send(LIST * 100)
        held.append(s)
    except BlockingIOError:
        full += 1
print(len(held) <= 33, full >= 9967)
""")
        self.assertEqual(out, "True True\n")

    # -- what it does not reach

    def test_nothing_but_the_one_socket_is_reached(self):
        out = self.client(rf"""
def tried(path):
    try:
        connect(path)
        return 'connected'
    except OSError as problem:
        return type(problem).__name__
print(os.listdir('/run'), os.listdir('/run/glove'))
print(tried({self.socket!r}), tried('/run/user/{os.getuid()}/bus'), tried('/run/glove/ssh-agent.sock'))
for work in (lambda: os.unlink('/run/glove/ssh-agent.sock'), lambda: os.rename('/run/glove', '/run/x')):
    try:
        work()
        print('worked')
    except OSError as problem:
        print(problem.errno)
""")
        self.assertEqual(out, "['glove'] ['ssh-agent.sock']\n"
                              "FileNotFoundError FileNotFoundError connected\n30\n16\n")
        with socket.socket(socket.AF_UNIX) as twin:
            twin.connect(self.socket)

    # -- the record

    def test_each_signature_is_on_record_before_it_is_made(self):
        self.client("key = keys(say(LIST))[0]\nsay(sign(key, b'12345'))\nsay(sign(b'other'))\n")
        lines = self.records()
        self.assertEqual([line["status"] for line in lines], ["pending", "ok"])
        self.assertEqual({line["call"] for line in lines}, {lines[0]["call"]})
        self.assertEqual({line["tool"] for line in lines}, {self.fingerprint["first"]})
        self.assertEqual(lines[0]["arguments"], '{"bytes":5}')

    def test_a_refusal_of_the_real_agent_is_an_outcome(self):
        script = ("key = keys(say(LIST))[0]\nopen('ready', 'w')\n"
                  "while not os.path.exists('gone'): time.sleep(0.01)\nprint(say(sign(key)))\n")
        with self.place.start("python3", "-c", CLIENT + script, flags=self.first,
                              stdout=subprocess.PIPE) as run:
            ready = os.path.join(self.place.workspace, "ready")
            self.assertTrue(inside.wait_until(lambda: os.path.exists(ready)))
            self.bare("ssh-add", "-q", "-D")
            self.place.put("gone", "")
            self.assertEqual(run.communicate(timeout=inside.PATIENCE)[0], b"b'\\x05'\n")
        lines = self.records()
        self.assertEqual([line["status"] for line in lines], ["pending", "execution_error"])
        self.assertIn("refused to sign", lines[1]["error"])

    def test_a_slow_confirmation_holds_nobody_else(self):
        """The caller's agent lists its keys, and then never answers."""
        report = self.place.path("report.json")
        script = ("key = keys(say(LIST))[0]\ns = connect()\ns.sendall(sign(key))\n"
                  "print([say(LIST)[:1] for _ in range(3)])\n"
                  "while not os.path.exists('seen'): time.sleep(0.01)\n")
        with self.other_agent("silent.sock") as mute:
            self.place.environment["SSH_AUTH_SOCK"] = self.place.path("silent.sock")
            with self.place.start("python3", "-c", CLIENT + script, flags=[*self.first, "--report", report],
                                  stdout=subprocess.PIPE) as run:
                self.hand_list_on(mute)
                peer, _ = mute.accept()
                with peer:
                    head = peer.recv(5)
                    self.assertEqual(head[4], 13)
                    self.assertEqual([line["status"] for line in self.records()], ["pending"])
                    self.place.put("seen", "")
                    self.assertEqual(run.communicate(timeout=inside.PATIENCE)[0],
                                     b"[b'\\x0c', b'\\x0c', b'\\x0c']\n")
        self.assertEqual([line["status"] for line in self.records()], ["pending", "transport_error"])
        with open(report, encoding="utf-8") as file:
            written = json.load(file)
        self.assertEqual(written["signatures"], {"made": 0, "failed": 1})
        self.assertEqual(written["ssh_agent"]["key"], self.fingerprint["first"])

    def other_agent(self, name):
        place = socket.socket(socket.AF_UNIX)
        self.addCleanup(place.close)
        place.bind(self.place.path(name))
        place.listen()
        return place

    def hand_list_on(self, place):
        """Answers the first question with what the real agent says."""
        peer, _ = place.accept()
        with peer, socket.socket(socket.AF_UNIX) as real:
            real.connect(self.socket)
            real.sendall(peer.recv(5))
            peer.sendall(real.recv(65536))

    # -- which socket

    def test_what_takes_the_name_of_the_socket_is_not_asked(self):
        script = ("while not os.path.exists('swapped'): time.sleep(0.01)\n"
                  "print(say(sign(keys(say(LIST))[0]))[:1])\n")
        real, moved = self.place.folder("real"), self.place.path("moved")
        name = os.path.join(real, "agent.sock")
        os.rename(self.socket, name)
        self.socket = name
        self.place.environment["SSH_AUTH_SOCK"] = name
        with self.other_agent("victim.sock") as victim:
            with self.place.start("python3", "-c", CLIENT + script, flags=self.first,
                                  stdout=subprocess.PIPE) as run:
                self.assertTrue(inside.wait_until(self.launched))
                os.rename(real, moved)
                os.mkdir(real)
                os.symlink(self.place.path("victim.sock"), name)
                self.place.put("swapped", "")
                self.assertEqual(run.communicate(timeout=inside.PATIENCE)[0], b"b'\\x0e'\n")
            victim.setblocking(False)
            self.assertRaises(BlockingIOError, victim.accept)

    def test_a_socket_that_the_command_could_replace_is_refused(self):
        below = os.path.join(self.place.workspace, "below")
        other = self.place.folder("other")
        for folder in (below, os.path.join(other, "deep")):
            os.mkdir(folder)
        self.place.environment["SSH_AUTH_SOCK"] = os.path.join(below, "link.sock")
        os.symlink(self.socket, os.path.join(below, "link.sock"))
        self.refused(*self.first, words=["below/link.sock", "lies in " + self.place.workspace, "ssh-agent -a"])
        # By a link of which only the target is in the grant, and by a socket that is.
        os.symlink(below, os.path.join(other, "way"))
        self.place.environment["SSH_AUTH_SOCK"] = os.path.join(other, "way", "link.sock")
        self.refused(*self.first, words=["below/link.sock", "lies in " + self.place.workspace])
        moved = os.path.join(other, "deep", "agent.sock")
        os.rename(self.socket, moved)
        self.place.environment["SSH_AUTH_SOCK"] = moved
        self.refused(*self.first, "--write", other, words=["deep/agent.sock", "lies in " + other])
        # The twins: where the command cannot write.
        for flags in ([], ["--read", other]):
            self.assertIn(self.fingerprint["first"], self.inside("ssh-add", "-l", flags=[*self.first, *flags]))

    def launched(self):
        for name in glob.glob(os.path.join(self.place.state, "glove/audit/*.jsonl")):
            with open(name, encoding="utf-8") as file:
                if "agent_launch" in file.read():
                    return True
        return False
