"""A model that follows a script, in the four dialects that agents speak.

Each step of the script is {"shell": COMMAND}, which becomes a call of the agent's own shell tool,
{"tool": NAME, "input": {...}}, with a "namespace" where the agent has them, {"server": TOOL, "input": {...}},
which is a call of the offered tool whose name ends so, or {"text": WORDS}. The model says it when the step's
"after", if there is one, has returned. How many results of tools the conversation holds tells which step is
next. While the tool of a server is not offered yet, for a minute at most, the agent gets something to do that
changes nothing; those results are not counted.
"""
import http.server
import json
import threading
import time

# How long an agent may take to offer the tools of its servers.
PATIENCE = 60

# The shell tools of the agents: which arguments make one run a command.
SHELLS = {
    "Bash": lambda command: {"command": command, "description": "A step"},             # claude
    "bash": lambda command: {"command": command, "description": "A step"},             # opencode, pi, copilot
    "run_shell_command": lambda command: {"command": command, "description": "A step"},  # gemini
    "exec_command": lambda command: {"cmd": command, "yield_time_ms": 30000},          # codex
    "shell_command": lambda command: {"command": command},                             # codex, other models
}


def text_of(content):
    """The text of a content, which is a string, a part, or a list of parts."""
    if isinstance(content, list):
        return "".join(text_of(part) for part in content)
    if isinstance(content, dict):
        return content.get("text") or content.get("output") or content.get("error") or ""
    return content or ""


# -- dialects: what is asked, and how an answer is said -----------------------------------------------
#
# Each has the names of the tools that a request offers, the results of tools that its conversation
# holds, and the events of an answer; whole() is the answer to a request that wants no stream.

class Messages:
    """Anthropic's Messages."""

    @staticmethod
    def tools(request):
        return [tool["name"] for tool in request.get("tools") or []]

    @staticmethod
    def results(request):
        return [text_of(part.get("content")) for message in request["messages"]
                if isinstance(message["content"], list)
                for part in message["content"] if part.get("type") == "tool_result"]

    @staticmethod
    def whole(request, step):
        block = {"type": "text", "text": step["text"]} if "text" in step else \
            {"type": "tool_use", "id": step["id"], "name": step["tool"], "input": step["input"]}
        return {"id": "msg_scripted", "type": "message", "role": "assistant", "model": request["model"],
                "content": [block], "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
                "stop_reason": "end_turn" if "text" in step else "tool_use"}

    @classmethod
    def events(cls, request, step):
        message = cls.whole(request, step)
        block = message["content"][0]
        empty = {**block, "text": ""} if "text" in step else {**block, "input": {}}
        delta = {"type": "text_delta", "text": step["text"]} if "text" in step else \
            {"type": "input_json_delta", "partial_json": json.dumps(step["input"])}
        for kind, data in (
                ("message_start", {"message": {**message, "content": [], "stop_reason": None}}),
                ("content_block_start", {"index": 0, "content_block": empty}),
                ("content_block_delta", {"index": 0, "delta": delta}),
                ("content_block_stop", {"index": 0}),
                ("message_delta", {"delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
                                   "usage": {"output_tokens": 1}}),
                ("message_stop", {})):
            yield kind, {"type": kind, **data}


class Completions:
    """OpenAI's chat completions."""

    @staticmethod
    def tools(request):
        return [tool["function"]["name"] for tool in request.get("tools") or []]

    @staticmethod
    def results(request):
        return [text_of(message["content"]) for message in request["messages"] if message["role"] == "tool"]

    @staticmethod
    def said(step):
        if "text" in step:
            return {"role": "assistant", "content": step["text"]}
        call = {"index": 0, "id": step["id"], "type": "function",
                "function": {"name": step["tool"], "arguments": json.dumps(step["input"])}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    @classmethod
    def answer(cls, request, choice):
        return {"id": "chatcmpl-scripted", "created": 1, "model": request["model"],
                "choices": [{"index": 0, **choice}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}

    @classmethod
    def whole(cls, request, step):
        end = "stop" if "text" in step else "tool_calls"
        return {"object": "chat.completion",
                **cls.answer(request, {"message": cls.said(step), "finish_reason": end})}

    @classmethod
    def events(cls, request, step):
        end = "stop" if "text" in step else "tool_calls"
        for choice in ({"delta": cls.said(step), "finish_reason": None}, {"delta": {}, "finish_reason": end}):
            yield None, {"object": "chat.completion.chunk", **cls.answer(request, choice)}
        yield None, "[DONE]"


class Responses:
    """OpenAI's responses."""

    @staticmethod
    def tools(request):
        """A tool of a server has its server's name in front, and a slash."""
        return [f"{tool['name']}/{each['name']}" if each is not tool else tool.get("name", tool["type"])
                for tool in request.get("tools") or [] for each in tool.get("tools", [tool])]

    @staticmethod
    def results(request):
        return [text_of(item["output"]) for item in request["input"] if isinstance(item, dict)
                and item.get("type") in ("function_call_output", "custom_tool_call_output")]

    @staticmethod
    def item(step):
        if "text" in step:
            return {"type": "message", "role": "assistant", "id": "msg_" + step["id"], "status": "completed",
                    "content": [{"type": "output_text", "text": step["text"], "annotations": []}]}
        server, _, name = step["tool"].rpartition("/")
        server = step.get("namespace", server)
        return {"type": "function_call", "id": "fc_" + step["id"], "call_id": step["id"], "status": "completed",
                "name": name, "arguments": json.dumps(step["input"]), **({"namespace": server} if server else {})}

    @classmethod
    def whole(cls, request, step):
        counts = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
                  "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        return {"id": "resp_scripted", "object": "response", "created_at": 1, "status": "completed",
                "model": request["model"], "output": [cls.item(step)], "usage": counts}

    @classmethod
    def events(cls, request, step):
        response, item = cls.whole(request, step), cls.item(step)
        for kind, data in (
                ("response.created", {"response": {**response, "status": "in_progress", "output": []}}),
                ("response.output_item.added", {"output_index": 0, "item": {**item, "status": "in_progress"}}),
                ("response.output_item.done", {"output_index": 0, "item": item}),
                ("response.completed", {"response": response})):
            yield kind, {"type": kind, **data}


class Generate:
    """Google's generateContent."""

    @staticmethod
    def tools(request):
        return [one["name"] for tool in request.get("tools") or [] for one in tool.get("functionDeclarations", [])]

    @staticmethod
    def results(request):
        return [text_of(part["functionResponse"]["response"]) for content in request["contents"]
                for part in content.get("parts", []) if "functionResponse" in part]

    @staticmethod
    def whole(_, step):
        part = {"text": step["text"]} if "text" in step else \
            {"functionCall": {"id": step["id"], "name": step["tool"], "args": step["input"]}}
        return {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}

    @classmethod
    def events(cls, request, step):
        yield None, cls.whole(request, step)


def dialect_of(path):
    """The dialect of a request's path, and whether the path itself asks for a stream."""
    for end, dialect in (("/messages", Messages), ("/chat/completions", Completions), ("/responses", Responses),
                         (":generateContent", Generate), (":streamGenerateContent", Generate)):
        if path.endswith(end):
            return dialect, end == ":streamGenerateContent"
    return None, False


# -- the server ---------------------------------------------------------------------------------------

class ScriptedModel(http.server.ThreadingHTTPServer):
    """Listens on the loopback. `told` holds the results of tools that the agent sent back, `offered` the
    names of the tools that it may ask for."""

    daemon_threads = True

    def __init__(self, script, port=0):
        super().__init__(("127.0.0.1", port), Answer)
        self.script, self.told, self.offered = script, [], set()
        self.idle, self.deadline = set(), None  # results of what changed nothing; until when there may be more
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # an agent that is done leaves without a word

    @property
    def port(self):
        return self.server_address[1]

    def step(self, dialect, request):
        """What to say next; a question without a shell, such as one for a title, is not of the script."""
        tools = dialect.tools(request)
        shell = next((name for name in SHELLS if name in tools), None)
        if shell is None:
            return {"id": "aside", "text": "ok"}
        self.offered.update(tools)
        results = dialect.results(request)
        known = [result for at, result in enumerate(results) if at not in self.idle]
        if len(known) > len(self.told):
            self.told = known
        at = min(len(known), len(self.script) - 1)
        step = {"id": f"call_{at}", **self.script[at]}
        step.pop("after", lambda: None)()
        if "server" in step:
            step["tool"] = next((name for name in tools if name.endswith(step["server"])), None)
            if step["tool"] is None:
                return self.pass_time(shell, len(results), step["server"])
        return {"tool": shell, "input": SHELLS[shell](step["shell"]), **step} if "shell" in step else step

    def pass_time(self, shell, at, server):
        """A call that changes nothing, each time another one: agents stop when they see themselves in a loop."""
        self.deadline = self.deadline or time.monotonic() + PATIENCE
        if time.monotonic() > self.deadline:
            return {"id": f"late_{at}", "tool": server, "input": {}}
        self.idle.add(at)
        return {"id": f"idle_{at}", "tool": shell, "input": SHELLS[shell](f"true {at}")}


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
        if path.endswith("/count_tokens"):
            return self.send(b'{"input_tokens": 1}')
        dialect, streams = dialect_of(path)
        if dialect is None:
            return self.send(b"{}", status=404)
        step = self.server.step(dialect, request)
        if not streams and not request.get("stream"):
            return self.send(json.dumps(dialect.whole(request, step)).encode())
        return self.send("".join(
            (f"event: {kind}\n" if kind else "") +
            f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n"
            for kind, data in dialect.events(request, step)).encode(), "text/event-stream")
