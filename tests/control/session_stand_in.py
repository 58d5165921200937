"""A service that runs sessions, in place of gloved where that cannot: frames, methods and answers as
the description of the protocol has them, with a real terminal and a real program behind each session.
It judges no plan and confines nothing. Needs nothing but the standard library.
"""
import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import termios
import threading
import time

import controller
import golden
import service

PLAN_MS = 3_600_000
SIGNALS = {"interrupt": signal.SIGINT, "terminate": signal.SIGTERM, "hangup": signal.SIGHUP}


class Session:
    """A session on record; its program once it was started."""

    def __init__(self, name, command, expires_in_ms=PLAN_MS):
        now = controller.now_ms() - 1
        self.view = {"schema_version": 1, "session_id": name, "controller_plan_digest": "c" * 64,
                     "plan_content_digest": "d" * 64, "state": "created", "policy_revision": 7,
                     "expires_at_ms": now + expires_in_ms, "created_at_ms": now}
        self.command, self.pid, self.master = command, None, None
        self.bytes, self.oldest, self.kept, self.eof = b"", 0, 4 << 20, False
        self.cause = None  # in place of how the program ended
        self.thread = None

    def start(self, at_end):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGHUP):
                    signal.signal(number, signal.SIG_DFL)
                os.execvpe(self.command[0], self.command, {"PATH": "/usr/bin:/bin", "TERM": "xterm", "PS1": "$ "})
            finally:
                os._exit(99)
        # Until then it has no foreground, and what is sent there would be for our own group.
        if not wait_until(lambda: os.tcgetpgrp(self.master) == self.pid or self.has_ended()):
            raise RuntimeError("the program did not get its terminal")
        self.view.update(state="running", profile_digest="e" * 64)
        self.thread = threading.Thread(target=self.follow, args=(at_end,), daemon=True)
        self.thread.start()

    def has_ended(self):
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def show(self, data):
        """What the terminal shows; only the newest bytes are kept."""
        self.bytes += data
        self.oldest += max(len(self.bytes) - self.kept, 0)
        self.bytes = self.bytes[-self.kept:]

    def follow(self, at_end):
        while True:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                data = b""
            if not data:
                break
            self.show(data)
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        at_end(self, status)
        self.eof = True

    def page(self, cursor, most):
        end = self.oldest + len(self.bytes)
        if cursor > end or self.pid is None:
            return None
        start = max(cursor, self.oldest)
        piece = self.bytes[start - self.oldest:start - self.oldest + most]
        return {"schema_version": 1, "session_id": self.view["session_id"], "oldest_cursor": self.oldest,
                "next_cursor": start + len(piece), "truncated": cursor < self.oldest,
                "eof": self.eof and start + len(piece) == end, "bytes": list(piece)}

    def size(self):
        return struct.unpack("4H", fcntl.ioctl(self.master, termios.TIOCGWINSZ, bytes(8)))[:2]

    def kill(self):
        if self.thread is not None and self.thread.is_alive():
            os.kill(self.pid, signal.SIGKILL)
            self.thread.join()


class Refusal(Exception):
    pass


class StandIn:
    """Answers at the socket of a runtime directory. `asked` has (method, payload, key) of each request;
    `refuse` codes that a method answers with first, one for each request; `delays` how long one takes."""

    def __init__(self, folder, key=golden.KEY):
        self.folder, self.key, self.sessions, self.asked, self.refuse = folder, key, {}, [], {}
        self.envelopes, self.head, self.reconciled, self.changes = [], controller.genesis(key), True, []
        self.page_changes, self.tamper, self.delays = 2, None, {}
        self.done, self.lock = {}, threading.Lock()
        self.secret = os.urandom(32).hex()
        service.private_file(os.path.join(folder, "bootstrap-secret"), self.secret + "\n")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.bind(os.path.join(folder, "gloved.sock"))
        os.chmod(os.path.join(folder, "gloved.sock"), 0o600)
        self.socket.listen(64)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def session(self, name, command=("sh",), **more):
        self.sessions[name] = Session(name, list(command), **more)
        return self.sessions[name]

    def run(self, name, *command):
        """A session that runs already."""
        one = self.session(name, command)
        one.start(self.ended)
        return one

    def of(self, method):
        """The payloads of the requests of a method."""
        with self.lock:
            return [payload for name, payload, _ in self.asked if name == method]

    def keys(self, method):
        with self.lock:
            return [key for name, _, key in self.asked if name == method]

    def typed(self):
        return b"".join(bytes(payload["bytes"]) for payload in self.of("write_stdin"))

    def close(self):
        self.stop_listening()  # first: it may just be starting one
        for one in self.sessions.values():
            one.kill()

    def stop_listening(self):
        if self.thread.is_alive():
            self.socket.shutdown(socket.SHUT_RDWR)
            self.socket.close()
            self.thread.join()
            os.unlink(os.path.join(self.folder, "gloved.sock"))

    # -- the wire ---------------------------------------------------------------------------------

    def serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                self.answer(connection)

    def answer(self, connection):
        try:
            size = struct.unpack(">I", controller.take(connection, 4))[0]
            asked = json.loads(controller.take(connection, size))
        except ConnectionError:
            return
        params = asked["params"]
        assert params["bootstrap_secret"] == self.secret
        assert params["deadline_ms"] >= controller.now_ms() - 1000
        method, payload, key = asked["method"], params["payload"], params.get("idempotency_key")
        with self.lock:
            self.asked.append((method, payload, key))
        if method in self.delays:
            select.select([connection], [], [], self.delays[method])  # or until the client has gone
        try:
            codes = self.refuse.get(method)
            if codes:
                raise Refusal(codes.pop(0))
            told = '"result":' + controller.canonical(self.carry_out(method, payload, key))
        except Refusal as why:
            told = '"error":' + controller.canonical({"code": str(why), "message": "a fixed message"})
        try:
            connection.sendall(controller.frame(f'{{"jsonrpc":"2.0","id":"{asked["id"]}",{told}}}'.encode()))
        except OSError:
            pass

    def carry_out(self, method, payload, key):
        if key is None:
            return getattr(self, method)(payload)
        if key in self.done:
            before, result = self.done[key]
            if before != (method, payload):
                raise Refusal("idempotency_conflict")
            return result
        result = getattr(self, method)(payload)
        self.done[key] = (method, payload), result
        return result

    # -- the methods ------------------------------------------------------------------------------

    def known(self, payload):
        if payload["session_id"] not in self.sessions:
            raise Refusal("session_not_found")
        return self.sessions[payload["session_id"]]

    def live(self, payload, code):
        one = self.known(payload)
        if one.view["state"] != "running":
            raise Refusal(code)
        return one

    def capabilities(self, _):
        return {"schema_version": 1, "receipt_audit": {"envelope_schema_version": 1, "algorithm": "hmac_sha256",
                                                       "key_id": controller.key_id(self.key)}}

    def session_status(self, payload):
        return dict(self.known(payload).view)

    def start_session(self, payload):
        if not self.reconciled:
            raise Refusal("audit_reconciliation_required")
        wish = payload["authorization"]
        one = self.known(wish)
        now = controller.now_ms()
        if (list(wish) != ["schema_version", "authorization_id", "session_id", "controller_plan_digest",
                           "plan_content_digest", "approved_at_ms", "expires_at_ms"]
                or wish["controller_plan_digest"] != one.view["controller_plan_digest"]
                or wish["plan_content_digest"] != one.view["plan_content_digest"]
                or not one.view["created_at_ms"] <= wish["approved_at_ms"] <= now < wish["expires_at_ms"]
                or wish["expires_at_ms"] - wish["approved_at_ms"] > 120_000
                or wish["expires_at_ms"] > one.view["expires_at_ms"]):
            raise Refusal("invalid_authorization")
        one.start(self.ended)
        return dict(one.view)

    def attach(self, payload):
        page = self.known(payload).page(payload["cursor"], payload["max_bytes"])
        if page is None:
            raise Refusal("session_attach_failed")
        return self.tamper(page) if self.tamper else page

    def write_stdin(self, payload):
        one = self.live(payload, "session_input_failed")
        os.write(one.master, bytes(payload["bytes"]))
        return self.acknowledged(payload)

    def resize(self, payload):
        one = self.live(payload, "session_resize_failed")
        fcntl.ioctl(one.master, termios.TIOCSWINSZ, struct.pack("4H", payload["rows"], payload["columns"], 0, 0))
        return self.acknowledged(payload)

    def signal(self, payload):
        one = self.live(payload, "session_signal_failed")
        group = os.tcgetpgrp(one.master)
        if group <= 1:  # nobody's, or our own
            raise Refusal("session_signal_failed")
        os.killpg(group, SIGNALS[payload["signal"]])
        return self.acknowledged(payload)

    def stop_session(self, payload):
        one = self.live(payload, "session_stop_failed")
        one.view["state"] = "stopping"
        os.kill(one.pid, signal.SIGKILL)
        return dict(one.view)

    def cleanup_session(self, payload):
        if self.known(payload).view["state"] not in ("exited", "failed"):
            raise Refusal("session_cleanup_failed")
        return self.acknowledged(payload)

    @staticmethod
    def acknowledged(payload):
        return {"schema_version": 1, "session_id": payload["session_id"]}

    def verify_audit_chain(self, payload):
        anchor = payload["sage_anchor"]
        place = controller.genesis(self.key) if anchor["sequence"] == 0 else self.place(anchor["sequence"])
        if anchor != place:
            raise Refusal("audit_reconciliation_failed")
        rest = self.envelopes[anchor["sequence"]:]
        page = rest[:min(payload["limit"], 15)]
        return {"schema_version": 1, "envelopes": page, "refinement_envelopes": [], "has_more": len(rest) > len(page),
                "local_anchor": self.head}

    def place(self, sequence):
        if sequence > len(self.envelopes):
            return None
        one = self.envelopes[sequence - 1]
        return {"key_id": one["key_id"], "sequence": sequence, "head_hmac": one["this_hmac"]}

    def acknowledge_audit_chain(self, payload):
        if payload["anchor"] != self.head:
            raise Refusal("audit_reconciliation_failed")
        self.reconciled = True
        return {"schema_version": 1, "acknowledged_anchor": self.head}

    def inspect_retained_changes(self, payload):
        first, most = payload["offset"], min(payload["limit"], self.page_changes)
        page = self.changes[first:first + most]
        out = {"schema_version": 1, "session_id": payload["session_id"], "exposure_id": payload["exposure_id"],
               "generation": 1, "manifest_digest": "a" * 64, "created": 1, "modified": 1, "renamed": 1, "removed": 1,
               "total_changes": len(self.changes)}
        if first + len(page) < len(self.changes):
            out["next_offset"] = first + len(page)
        out["changes"] = page
        return self.tamper(out) if self.tamper else out

    # -- ends -------------------------------------------------------------------------------------

    def ended(self, one, status):
        cause = one.cause or ("exited" if status >= 0 else "signaled")
        self.put_receipt(one.view["session_id"], cause, status)
        one.view["state"] = "exited"

    def put_receipt(self, name, cause="exited", status=0):
        receipt = golden.receipt() | {"termination_cause": cause, "exit_code": status}
        if cause != "exited":
            del receipt["exit_code"]
        with self.lock:
            envelope, self.head = controller.make_envelope(self.key, self.head, name, "c" * 64, receipt)
            self.envelopes.append(envelope)


def wait_until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True
