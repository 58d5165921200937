"""A tool server for tests: `server.py MODE`. Its tool `act` does what the mode says."""
import json
import os
import signal
import subprocess
import sys
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else "good"
WORDS = sys.argv[2] if len(sys.argv) > 2 else "acts"
if MODE == "wide":  # so much text
    WORDS = "x" * int(WORDS)


def raw(data):
    while data:
        data = data[os.write(1, data):]


def out(message):
    raw(json.dumps(message).encode() + b"\n")


def grandchild():
    """In a session of its own, with no stream of this process, deaf to what one can be deaf to."""
    script = "import os,signal,time\nfor s in (1,2,13,15): signal.signal(s, signal.SIG_IGN)\ntime.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", script, os.environ.get("MARK", "")], start_new_session=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return child.pid


def act(identity, arguments):
    answer = {"jsonrpc": "2.0", "id": identity}
    good = {"content": [{"type": "text", "text": "ok " + MODE}]}
    number = str(identity).encode()
    if MODE == "die":
        os._exit(3)
    elif MODE == "stderr":
        sys.stderr.write("x" * 300000 + "\n" + "y" * 300000)
        sys.stderr.flush()
    elif MODE == "wrongid":
        out({"jsonrpc": "2.0", "id": 99999, "result": {"content": []}})
    elif MODE == "strid":
        return out({"jsonrpc": "2.0", "id": str(identity), "result": good})
    elif MODE == "dup":
        out({**answer, "result": {"content": [{"type": "text", "text": "first"}]}})
    elif MODE == "both":
        return out({**answer, "result": good, "error": {"code": 1, "message": "x"}})
    elif MODE == "badutf8":
        return raw(b'{"jsonrpc":"2.0","id":%s,"result":{"content":[{"text":"\xff\xfe"}]}}\n' % number)
    elif MODE == "embednl":
        return raw(b'{"jsonrpc":"2.0",\n"id":%s,"result":{"content":[]}}\n' % number)
    elif MODE == "deep":
        return raw(b'{"jsonrpc":"2.0","id":%s,"result":{"x":%s%s}}\n' % (number, b"[" * 100000, b"]" * 100000))
    elif MODE == "long":
        return raw(b'{"jsonrpc":"2.0","id":%s,"result":{"x":"%s"}}\n' % (number, b"x" * (16 << 20)))
    elif MODE == "silent":
        return None
    elif MODE == "closes":
        os.close(1)
        return time.sleep(600)
    elif MODE == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif MODE == "big":
        return out({**answer, "result": {"content": [{"type": "text", "text": "x" * arguments["bytes"]}]}})
    elif MODE == "grandchild":
        good["content"][0]["text"] = str(grandchild())
    elif MODE == "environment":
        good["content"][0]["text"] = json.dumps(dict(os.environ))
    elif MODE == "cancel":
        line = json.loads(sys.stdin.buffer.readline())
        out({**answer, "result": {"content": [{"type": "text", "text": "late"}]}})
        with open(os.environ["MARK"], "w", encoding="utf-8") as file:
            json.dump([identity, line], file)
        return None
    elif "message" in arguments:
        good["content"][0]["text"] = arguments["message"]
    return out({**answer, "result": good})


def serve():
    if MODE == "banner":
        raw(b"Server starting...\n\nplease wait\n")
    elif MODE == "slow":
        time.sleep(1)
    elif MODE == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif MODE == "fails":
        sys.exit("no such database")
    elif MODE == "chatty":
        raw(b"x\n" * 100)
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        identity, method = message["id"], message["method"]
        if method == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}},
                      "serverInfo": {"name": "test", "version": "1"}}
        elif method == "tools/list":
            result = {"tools": [{"name": name, "description": WORDS, "inputSchema": {"type": "object"}}
                                for name in ("act", "other")]}
        elif method == "tools/call":
            act(identity, message["params"].get("arguments", {}))
            continue
        else:
            result = {}
        out({"jsonrpc": "2.0", "id": identity, "result": result})
    if MODE == "deaf":
        time.sleep(600)


serve()
