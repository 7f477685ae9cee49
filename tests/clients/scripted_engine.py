"""An engine that says what a clever model would: calls a tool that it is offered, and edits a file as it is asked to.

It speaks the chat-completions format behind Hob, so that a client's whole way of working can be tried with a model too small
for it. Every answer follows from the request alone.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODEL = "scripted"

# A file that is asked about; and what the assistant of a program that edits files has to say: the file's name, and all
# of it in a fence.
NOTES = "notes.txt"
EDIT = "greeting.py\n```\nprint('Hello, world!')\n```\n"


def answer(request):
    """The assistant's message for a request."""
    messages = request["messages"]
    if messages[-1]["role"] == "tool":
        return {"role": "assistant", "content": f"The tool said {messages[-1]['content']}."}
    if call := tool_call(request):
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if "greeting.py" in json.dumps(messages):
        return {"role": "assistant", "content": EDIT}
    return {"role": "assistant", "content": "The capital of France is Paris."}


def tool_call(request):
    """A call of a tool that fits: the only one, if it needs nothing, or one that reads the file that was asked about."""
    asks_for_file = NOTES in json.dumps(request["messages"][-1])
    tools = request.get("tools") or []
    for tool in tools:
        required = tool["function"].get("parameters", {}).get("required", [])
        if (len(tools) == 1 and not required) or (asks_for_file and required == ["filepath"]):
            arguments = json.dumps(dict.fromkeys(required, NOTES))
            return {
                "id": "call_1",
                "type": "function",
                "function": {"name": tool["function"]["name"], "arguments": arguments},
            }
    return None


def finish_reason(message):
    return "tool_calls" if message.get("tool_calls") else "stop"


def whole(message):
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason(message)}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice], "usage": usage}


def chunks(message):
    """The same in pieces."""
    deltas = [{"role": "assistant"}]
    for index, call in enumerate(message.get("tool_calls", [])):
        deltas.append({"tool_calls": [{"index": index, **call}]})
    deltas += [{"content": piece} for piece in (message["content"] or "").splitlines(keepends=True)]
    for delta in deltas:
        yield chunk(delta, None)
    yield chunk({}, finish_reason(message))


def chunk(delta, reason):
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": [choice]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send("application/json", json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model"}]}))

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = answer(request)
        if request.get("stream"):
            events = [json.dumps(event) for event in chunks(message)] + ["[DONE]"]
            self.send("text/event-stream", "".join(f"data: {event}\n\n" for event in events))
        else:
            self.send("application/json", json.dumps(whole(message)))

    def send(self, kind, body):
        body = body.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class ScriptedEngine:
    """Runs for as long as the block it is used in."""

    def __enter__(self):
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
