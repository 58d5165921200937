"""An MCP server with the tools `echo` and `other`, for tests.

    tool_server.py MARKER [slow] [family] [deaf]

The marker is how a test finds the process. `slow` never answers; `family` starts a child in a session of
its own, which ignores SIGTERM; `deaf` ignores SIGTERM and the end of its input.
"""
import json
import signal
import subprocess
import sys
import time

TOOLS = [{"name": "echo", "description": "Says it again", "inputSchema": {
    "type": "object", "properties": {"text": {"type": "string"}}}},
         {"name": "other", "inputSchema": {"type": "object"}}]
CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


def answer(message):
    method = message["method"]
    if method == "initialize":
        return {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "test", "version": "1"}}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "again: " + message["params"]["arguments"].get("text", "")}]}
    return {}


def main():
    marker, asked = sys.argv[1], sys.argv[2:]
    if "family" in asked:
        with subprocess.Popen([sys.executable, "-c", CHILD, marker], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as child:
            child.returncode = 0  # nobody waits for it
    if "deaf" in asked:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "slow" in asked:
        time.sleep(600)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer(message)}), flush=True)
    if "deaf" in asked:
        time.sleep(600)


main()
