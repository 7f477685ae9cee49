"""An engine that says what a clever model would: calls a tool that it is offered, and edits a file as it is asked to.

It uses the chat-completions format behind Hob, so that a client's whole way of working can be tried with a model too small
for it. Every answer follows from the request alone.
"""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODEL = "scripted"

# A file that is asked about, and one that is to be edited.
NOTES = "notes.txt"
GREETING = "greeting.py"

# The edit as different programs want it: the file's name and all of it in a fence, and a patch that a command applies.
WHOLE_FILE = f"{GREETING}\n```\nprint('Hello, world!')\n```\n"
PATCH = f"""apply_patch <<'END'
*** Begin Patch
*** Update File: {GREETING}
@@
-print('Hello, nobody!')
+print('Hello, world!')
*** End Patch
END
"""


def answer(request):
    """The assistant's message for a request."""
    messages = request["messages"]
    if call := forced_call(request) or edit_call(request):
        return calling(*call, place=len(messages))
    if messages[-1]["role"] == "tool":
        return saying(f"The tool said {text_of(messages[-1])}.")
    if schema := (request.get("response_format") or {}).get("json_schema", {}).get("schema"):
        return saying(json.dumps(example(schema)))
    if call := fitting_call(request):
        return calling(*call, place=len(messages))
    if GREETING in asked(messages):
        return saying(WHOLE_FILE)
    if "in_europe" in json.dumps(messages):
        # The schema is in the prompt.
        answer = '{"city": "Paris", "in_europe": true}'
        fenced = "```json" in json.dumps(messages)
        return saying(f"```json\n{answer}\n```" if fenced else answer)
    return saying("The capital of France is Paris.")


def saying(text):
    return {"role": "assistant", "content": text}


def calling(name, arguments, place):
    # Two calls of a conversation never have the same id: clients take them for one.
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{place}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def forced_call(request):
    """A call of the tool that the request insists on."""
    choice = request.get("tool_choice")
    if choice == "required":
        return the_call(request["tools"][0]["function"])
    if isinstance(choice, dict):
        return next(the_call(tool) for tool in functions(request) if tool["name"] == choice["function"]["name"])
    return None


def edit_call(request):
    """The next step of an edit, with the tools of the program that asks for it."""
    messages = request["messages"]
    offered = {tool["name"] for tool in functions(request)}
    done = {call["function"]["name"] for message in messages for call in message.get("tool_calls") or []}
    if GREETING not in asked(messages):
        return None
    if "exec_command" in offered - done:
        return "exec_command", {"cmd": PATCH}
    if {"Read", "Edit"} <= offered:
        directory = re.search(r"working directory: (\S+)", "\n".join(map(text_of, messages))).group(1)
        path = f"{directory}/{GREETING}"
        if "Read" not in done:
            return "Read", {"file_path": path}
        if "Edit" not in done:
            return "Edit", {"file_path": path, "old_string": "nobody", "new_string": "world"}
    return None


def fitting_call(request):
    """A call of a tool that fits: the only one, or one that reads the file that was asked about."""
    tools = functions(request)
    if len(tools) == 1:
        return the_call(tools[0])
    for tool in tools:
        if NOTES in text_of(request["messages"][-1]) and tool["parameters"].get("required") == ["filepath"]:
            return tool["name"], {"filepath": NOTES}
    return None


def the_call(tool):
    return tool["name"], example(tool.get("parameters") or {})


def functions(request):
    return [tool["function"] for tool in request.get("tools") or []]


def asked(messages):
    """All that the user said."""
    return "\n".join(text_of(message) for message in messages if message["role"] == "user")


def text_of(message):
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def example(schema):
    """A value that the schema allows."""
    if "enum" in schema:
        return schema["enum"][0]
    if "properties" in schema:
        return {name: example(member) for name, member in schema["properties"].items()}
    return {"object": {}, "array": [], "boolean": True, "integer": 1, "number": 1.5}.get(schema.get("type"), "some text")


def finish_reason(message):
    return "tool_calls" if message.get("tool_calls") else "stop"


USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def whole(message):
    choice = {"index": 0, "message": message, "finish_reason": finish_reason(message)}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice], "usage": USAGE}


def chunks(message):
    """The same in pieces; the arguments of a call arrive in two."""
    yield chunk({"role": "assistant"}, None)
    for index, call in enumerate(message.get("tool_calls", [])):
        arguments = call["function"]["arguments"]
        half = len(arguments) // 2
        begun = {"name": call["function"]["name"], "arguments": arguments[:half]}
        yield chunk({"tool_calls": [{"index": index, **call, "function": begun}]}, None)
        yield chunk({"tool_calls": [{"index": index, "function": {"arguments": arguments[half:]}}]}, None)
    for piece in (message["content"] or "").splitlines(keepends=True):
        yield chunk({"content": piece}, None)
    yield chunk({}, finish_reason(message))
    yield {**chunk({}, None), "choices": [], "usage": USAGE}


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
