"""A model that follows a script: enough of the Messages interface for a real agent to be driven by it.

Each step of the script is {"tool": NAME, "input": {...}} or {"text": WORDS}. How many results of tools
the conversation holds tells which step is next.
"""
import http.server
import json
import threading


def results(messages):
    """The results of tools in a conversation, as text."""
    found = []
    for message in messages:
        for part in message["content"] if isinstance(message["content"], list) else []:
            if part.get("type") == "tool_result":
                content = part.get("content")
                found.append(content if isinstance(content, str) else
                             "".join(each.get("text", "") for each in content or []))
    return found


def content_of(step):
    if "tool" in step:
        return {"type": "tool_use", "id": "toolu_scripted", "name": step["tool"], "input": step["input"]}
    return {"type": "text", "text": step["text"]}


def events(message, block):
    """The message as the stream of its parts."""
    empty = {**block, "input": {}} if block["type"] == "tool_use" else {**block, "text": ""}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])} \
        if block["type"] == "tool_use" else {"type": "text_delta", "text": block["text"]}
    yield "message_start", {"message": {**message, "content": [], "stop_reason": None}}
    yield "content_block_start", {"index": 0, "content_block": empty}
    yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    yield "message_delta", {"delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
                            "usage": {"output_tokens": 1}}
    yield "message_stop", {}


class ScriptedModel(http.server.ThreadingHTTPServer):
    """Listens on the loopback. `told` holds the results of tools that the agent sent back."""

    daemon_threads = True

    def __init__(self, script):
        super().__init__(("127.0.0.1", 0), Answer)
        self.script, self.told = script, []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # an agent that is done leaves without a word

    @property
    def port(self):
        return self.server_address[1]

    def step(self, request):
        if not request.get("tools"):  # a side question, such as a title
            return {"text": "ok"}
        known = results(request["messages"])
        if len(known) > len(self.told):
            self.told = known
        return self.script[min(len(known), len(self.script) - 1)]


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, body, kind="application/json", status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if self.command != "HEAD" else b"")

    def do_GET(self):
        self.send(b"{}", status=404)

    do_HEAD = do_GET

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.partition("?")[0]
        if path == "/v1/messages/count_tokens":
            return self.send(b'{"input_tokens": 1}')
        if path != "/v1/messages":
            return self.send(b"{}", status=404)
        block = content_of(self.server.step(request))
        message = {"id": "msg_scripted", "type": "message", "role": "assistant", "model": request["model"],
                   "content": [block], "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
                   "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn"}
        if not request.get("stream"):
            return self.send(json.dumps(message).encode())
        return self.send("".join(f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"
                                 for kind, data in events(message, block)).encode(), "text/event-stream")
