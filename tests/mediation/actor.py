"""A tool server that does what its caller asks, honest things and hostile ones alike.

    actor.py [--log FILE] [--start MODE] [--tools FILE]

Its one tool `act` takes {"do": DEED, ...}: see Actor.do_*. `other` does the same under another name.
Every line that arrives is written to the log before anything is done about it, so a test can tell what
never arrived. MODE is what goes wrong before a client is served. FILE of --tools holds the list to
answer, read anew each time.
"""
import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
ACT = {"name": "act", "description": "Does it", "inputSchema": {"type": "object"}}
TOOLS = [ACT, {**ACT, "name": "other"}]


def put(data):
    """Bytes to stdout, all of them."""
    if isinstance(data, str):
        data = data.encode()
    while data:
        data = data[os.write(1, data):]


def say(message):
    put(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def answer(request, result):
    say({"id": request["id"], "result": result})


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def notify(method, **params):
    say({"method": method, **({"params": params} if params else {})})


class Actor:
    def __init__(self, options):
        self.options = options
        self.log = open(options.log, "ab", buffering=0) if options.log else None
        self.calls = 0
        self.waiting = {}  # our own requests: the call that waits for the answer

    def run(self):
        for line in sys.stdin.buffer:
            if self.log:
                self.log.write(line)
            message = json.loads(line)
            method = message.get("method")
            if method is None:
                self.answered(message)
            elif "id" in message:
                getattr(self, "on_" + method.replace("/", "_"), self.unknown)(message)

    @staticmethod
    def unknown(request):
        say({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})

    def on_initialize(self, request):
        wanted = request["params"]["protocolVersion"]
        revision = wanted if wanted in REVISIONS else REVISIONS[0]
        answer(request, {"protocolVersion": revision, "capabilities": {
            "tools": {"listChanged": True}, "logging": {}, "resources": {"subscribe": True}, "prompts": {},
            "completions": {}}, "serverInfo": {"name": "actor", "version": "1"}, "instructions": "Do as you like."})

    @staticmethod
    def on_ping(request):
        answer(request, {})

    def on_tools_list(self, request):
        if self.options.start == "pages":  # for ever
            return answer(request, {"tools": [ACT], "nextCursor": "again"})
        if self.options.start == "long-list":  # 250 pages of one tool each
            at = int(request.get("params", {}).get("cursor", "0"))
            return answer(request, {"tools": [{**ACT, "name": f"act{at}"}],
                                    **({"nextCursor": str(at + 1)} if at < 249 else {})})
        if self.options.tools:
            with open(self.options.tools, encoding="utf-8") as file:
                return answer(request, {"tools": json.load(file)})
        return answer(request, {"tools": TOOLS})

    # Answered when they are relayed.

    @staticmethod
    def on_resources_list(request):
        answer(request, {"resources": [{"uri": uri, "name": uri} for uri in ("demo://open/a", "demo://secret/b")]})

    @staticmethod
    def on_resources_templates_list(request):
        answer(request, {"resourceTemplates": [{"uriTemplate": "demo://open/{name}", "name": "open"}]})

    @staticmethod
    def on_resources_read(request):
        uri = request["params"]["uri"]
        answer(request, {"contents": [{"uri": uri, "text": f"content of {uri}"}]})

    def on_empty(self, request):
        answer(request, {})

    on_resources_subscribe = on_resources_unsubscribe = on_logging_setLevel = on_empty

    @staticmethod
    def on_prompts_list(request):
        answer(request, {"prompts": [{"name": "open"}, {"name": "secret"}]})

    @staticmethod
    def on_prompts_get(request):
        content = {"type": "text", "text": request["params"]["name"]}
        answer(request, {"messages": [{"role": "user", "content": content}]})

    @staticmethod
    def on_completion_complete(request):
        answer(request, {"completion": {"values": ["a"]}})

    def on_tools_call(self, request):
        self.calls += 1
        given = request["params"].get("arguments") or {}
        getattr(self, "do_" + given.get("do", "echo"))(request, given)

    def answered(self, message):
        request = self.waiting.pop(message["id"], None)
        if request:
            answer(request, text(json.dumps(message)))

    # -- honest --

    @staticmethod
    def do_echo(request, given):
        answer(request, text(str(given.get("words", ""))))

    @staticmethod
    def do_params(request, _):
        """What arrived."""
        answer(request, text(json.dumps(request["params"])))

    def do_count(self, request, _):
        answer(request, text(str(self.calls)))

    @staticmethod
    def do_environment(request, _):
        answer(request, text(json.dumps(dict(os.environ))))

    @staticmethod
    def do_whoami(request, _):
        """What a process of the host has: its number, group, descriptors."""
        answer(request, text(json.dumps({"pid": os.getpid(), "group": os.getpgid(0), "cwd": os.getcwd(),
                                         "descriptors": sorted(os.listdir("/proc/self/fd"))})))

    @staticmethod
    def do_read(request, given):
        with open(given["file"], encoding="utf-8") as file:
            answer(request, text(file.read()))

    @staticmethod
    def do_shell(request, given):
        """Whatever a command does; what it prints is the answer."""
        done = subprocess.run(["sh", "-c", given["command"]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        answer(request, text(json.dumps({"status": done.returncode, "output": done.stdout.decode()})))

    @staticmethod
    def do_complain(request, given):
        """To stderr."""
        print(given["words"], file=sys.stderr, flush=True)
        answer(request, text("complained"))

    @staticmethod
    def do_progress(request, given):
        token = request["params"].get("_meta", {}).get("progressToken")
        for step in range(given["steps"]):
            notify("notifications/progress", progressToken=token, progress=step, message=given.get("words", ""))
            time.sleep(given.get("pause", 0.02))
        answer(request, text(str(given.get("words", "there"))))

    @staticmethod
    def do_sleep(request, given):
        time.sleep(given["seconds"])
        answer(request, text("slept"))

    @staticmethod
    def do_fails(request, _):
        answer(request, {"isError": True, **text("it did not go well")})

    @staticmethod
    def do_error(request, _):
        say({"id": request["id"], "error": {"code": -32050, "message": "an error of the server"}})

    @staticmethod
    def do_result(request, given):
        """Any result at all."""
        answer(request, given["result"])

    def do_ask(self, request, given):
        """A request of our own first; the answer to the call is what came back."""
        self.waiting[given.get("id", 0)] = request
        say({"id": given.get("id", 0), "method": given["method"], "params": given.get("params", {})})

    def do_change(self, request, _):
        notify("notifications/tools/list_changed")
        answer(request, text("changed"))

    @staticmethod
    def do_notify(request, given):
        notify(given["method"], **given["params"])
        answer(request, text("told"))

    @staticmethod
    def do_large(request, given):
        answer(request, text("x" * given["bytes"]))

    # -- hostile --

    @staticmethod
    def do_die(_, __):
        os._exit(3)

    @staticmethod
    def do_once(request, _):
        """Answers, and leaves."""
        answer(request, text("once"))
        os._exit(0)

    @staticmethod
    def do_stderr(request, given):
        for _ in range(given.get("lines", 1)):
            os.write(2, b"x" * given.get("bytes", 300_000) + b"\n")
        answer(request, text("ok"))

    @staticmethod
    def do_wrongid(request, _):
        say({"id": 99999, "result": text("of nobody")})
        answer(request, text("ok"))

    @staticmethod
    def do_onlywrongid(_, __):
        say({"id": 99999, "result": text("of nobody")})

    @staticmethod
    def do_strid(request, _):
        say({"id": str(request["id"]), "result": text("of a string")})

    @staticmethod
    def do_nullid(_, __):
        say({"id": None, "result": text("of null")})

    @staticmethod
    def do_dup(request, _):
        answer(request, text("first"))
        answer(request, text("second"))

    @staticmethod
    def do_both(request, _):
        say({"id": request["id"], "result": text("ok"), "error": {"code": 1, "message": "both"}})

    @staticmethod
    def do_neither(request, _):
        say({"id": request["id"]})

    @staticmethod
    def do_badutf8(request, _):
        put(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\xff\xfe"}]}}\n' % request["id"])

    @staticmethod
    def do_embednl(request, _):
        put('{"jsonrpc":"2.0",\n"id":%d,"result":{"content":[]}}\n' % request["id"])

    @staticmethod
    def do_deep(request, given):
        depth = given.get("depth", 100_000)
        put('{"jsonrpc":"2.0","id":%d,"result":{"content":[],"x":%s%s}}\n' % (request["id"], "[" * depth, "]" * depth))

    @staticmethod
    def do_twice(request, _):
        """The same name twice in the result."""
        put('{"jsonrpc":"2.0","id":%d,"result":{"content":[],"content":[]}}\n' % request["id"])

    @staticmethod
    def do_batch(request, _):
        put('[{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}]\n' % request["id"])

    @staticmethod
    def do_noise(_, __):
        put("Listening on port 3000\n")

    @staticmethod
    def do_silent(_, __):
        pass

    @staticmethod
    def do_line(_, given):
        """A line that does not end for a long time."""
        put(b'{"jsonrpc":"2.0","id":')
        for _ in range(given["bytes"] // 65536):
            put(b" " * 65536)
        put(b"1}\n")

    @staticmethod
    def do_put(request, given):
        """Any bytes, as Latin-1 has them; 424242 stands for the call's id."""
        put(given["text"].replace("424242", str(request["id"])).encode("latin-1"))

    @staticmethod
    def do_deaf(request, _):
        """Answers, and reads nothing any more."""
        answer(request, text("deaf"))
        time.sleep(4000)

    @staticmethod
    def do_unended(request, _):
        """An answer without the end of its line, and no more."""
        put(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": text("x")}))
        os._exit(0)

    @staticmethod
    def do_flood(request, given):
        for number in range(given["count"]):
            notify(given.get("method", "notifications/message"), level="info", data=number)
        answer(request, text("flooded"))

    @staticmethod
    def do_storm(request, given):
        for _ in range(given["count"]):
            notify("notifications/tools/list_changed")
        answer(request, text("stormed"))

    @staticmethod
    def do_strangers(request, given):
        """Progress for a token that is nobody's."""
        for token in given["tokens"]:
            notify("notifications/progress", progressToken=token, progress=1, message="a stranger's")
        answer(request, text("ok"))

    @staticmethod
    def do_requests(request, given):
        """Many requests, whose answers are not waited for."""
        for number in range(given["count"]):
            say({"id": f"own-{number}", "method": "sampling/createMessage", "params": {}})
        answer(request, text("asked"))

    @staticmethod
    def do_fork(request, given):
        """A grandchild in a session of its own that ignores every signal it can."""
        code = ("import os,signal,sys,time\n"
                "for s in (1, 2, 3, 15): signal.signal(s, signal.SIG_IGN)\n"
                "if os.fork(): os._exit(0)\n"
                "os.setsid(); time.sleep(4000)\n")
        subprocess.run([sys.executable, "-c", code, given["marker"]], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        answer(request, text("forked"))

    @staticmethod
    def do_cling(request, _):
        """Neither a signal nor the end of stdin ends it any more."""
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        answer(request, text("clinging"))
        while True:
            with contextlib.suppress(Exception):
                time.sleep(4000)


# -- what goes wrong before a client is served --------------------------------------------------------

def begin(mode):
    if mode == "banner":
        put("Server starting...\n\nReady.\n")
    elif mode == "banners":
        put("Server starting...\n" * 1000)
    elif mode == "slow":
        time.sleep(2)
    elif mode == "never":  # as an installation that takes its time
        sys.stderr.write("fetching 818 MB of packages\n")
        sys.stderr.flush()
        time.sleep(4000)
    elif mode == "dies":
        sys.stderr.write("cannot start: a reason\n")
        sys.exit(7)
    elif mode == "colours":
        sys.stderr.write("\x1b[31mred\x1b]0;title\x07 words\n")
        sys.exit(7)
    elif mode == "early":  # a notification before the answer to initialize
        notify("notifications/tools/list_changed")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--log")
    options.add_argument("--start", default="")
    options.add_argument("--tools")
    options.add_argument("--marker")
    options = options.parse_args()
    begin(options.start)
    Actor(options).run()


if __name__ == "__main__":
    main()
