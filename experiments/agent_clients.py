"""What the experiments with real clients share: a scripted model on this machine that speaks the four protocols, and the app server of Codex."""
import http.server, json, os, re, subprocess, threading, time

USAGE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
TIMEOUT = 120
# The tools that run a command, as the clients name them.
SHELLS = ("exec_command", "shell_command", "shell", "bash", "Bash", "run_shell_command", "local_shell")


def config(port):
    """the configuration of Codex"""
    return f"""model = "mock-model"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.mock]
name = "mock"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
requires_openai_auth = false
"""


def text_of(content):
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or [] if "text" in part)


def item_of(item):
    """an item of a request of the Responses API"""
    kind = item.get("type", "message")
    if kind == "message":
        return {"kind": item["role"], "text": text_of(item["content"])}
    if kind == "function_call":
        return {"kind": "tool_call", "name": item["name"], "callId": item["call_id"], "input": json.loads(item["arguments"])}
    if kind == "custom_tool_call":
        return {"kind": "tool_call", "name": item["name"], "callId": item["call_id"], "input": item["input"]}
    if kind in ("function_call_output", "custom_tool_call_output"):
        return {"kind": "tool_result", "callId": item["call_id"], "output": text_of(item["output"])}
    return {"kind": kind}


def blocks_of(request):
    """the blocks of a request of the Messages API"""
    for message in request["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "text":
                yield {"kind": message["role"], "text": block["text"]}
            elif block["type"] == "tool_use":
                yield {"kind": "tool_call", "name": block["name"], "callId": block["id"], "input": block["input"]}
            elif block["type"] == "tool_result":
                yield {"kind": "tool_result", "callId": block["tool_use_id"], "output": text_of(block["content"])}
            else:
                yield {"kind": block["type"]}


def chat_items_of(request):
    """the items of a request of chat completions"""
    for message in request["messages"]:
        if message["role"] == "tool":
            yield {"kind": "tool_result", "callId": message["tool_call_id"], "output": text_of(message["content"])}
            continue
        text = text_of(message.get("content"))
        if text:
            yield {"kind": message["role"], "text": text}
        for call in message.get("tool_calls") or []:
            function = call["function"]
            yield {"kind": "tool_call", "name": function["name"], "callId": call["id"], "input": json.loads(function["arguments"])}


def gemini_items_of(request):
    """the items of a request of the Gemini API"""
    for content in request["contents"]:
        for part in content["parts"]:
            if "functionCall" in part:
                call = part["functionCall"]
                yield {"kind": "tool_call", "name": call["name"], "callId": call.get("id"), "input": call.get("args")}
            elif "functionResponse" in part:
                response = part["functionResponse"]
                value = response["response"]
                output = value.get("output", value.get("error")) if isinstance(value, dict) else value
                yield {"kind": "tool_result", "callId": response.get("id"), "output": output if isinstance(output, str) else json.dumps(output)}
            elif part.get("text") and not part.get("thought"):
                yield {"kind": "assistant" if content.get("role") == "model" else "user", "text": part["text"]}


def tools_of(request):
    """the names of the tools of a request, with their parameters"""
    found = {}
    for tool in request.get("tools") or []:
        for one in tool.get("functionDeclarations") or [tool.get("function", tool)]:
            schema = one.get("parameters") or one.get("parametersJsonSchema") or one.get("input_schema") or {}
            if "name" in one:
                found[one["name"]] = schema
    return found


def call_of(request, command):
    """a call of a tool that runs a command: its name and input"""
    tools = tools_of(request)
    name = next((name for name in SHELLS if name in tools), None)
    if name is None:
        return None
    input = {}
    properties = tools[name].get("properties", {})
    for key in {*tools[name].get("required", []), *(key for key in ("cmd", "command") if key in properties)}:
        kind = properties.get(key, {}).get("type")
        if key in ("cmd", "command"):
            input[key] = ["sh", "-c", command] if kind == "array" else command
        else:
            input[key] = {"boolean": False, "number": 10, "integer": 10, "array": []}.get(kind, "a command")
    return name, input


class Model(http.server.BaseHTTPRequestHandler):
    """answers a prompt `U01 …` with `A01 …`; one with the word `call` first with a call that prints `O01`; other requests with a summary"""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        request = json.loads(body or "{}")
        path = self.path.split("?")[0]
        if path.endswith("/responses"):
            items, write = [item_of(item) for item in request["input"] if isinstance(item, dict)], self.write_responses
        elif path.endswith("/messages"):
            items, write = list(blocks_of(request)), self.write_messages
        elif path.endswith("/completions"):
            items, write = list(chat_items_of(request)), self.write_completions
        elif "enerateContent" in path:
            items, write = list(gemini_items_of(request)), self.write_gemini
        else:
            return self.json({"input_tokens": 1, "totalTokens": 1})
        self.server.requests.append(request)
        self.server.items.append(items)
        write(request, *self.answer(request, items))

    def answer(self, request, items):
        """a text, and a call or nothing"""
        prompts = [at for at, item in enumerate(items) if item["kind"] == "user" and re.search(r"\bU\d\d\b", item["text"])]
        if getattr(self.server, "fixed", None):
            return self.server.fixed, None
        users = [item for item in items if item["kind"] == "user"]
        if not prompts or re.search(r"summar|handoff|checkpoint", users[-1]["text"], re.I) and not re.search(r"\bU\d\d\b", users[-1]["text"]):
            return "S01 summary", None
        at = prompts[-1]
        number = re.findall(r"\bU(\d\d)\b", items[at]["text"])[-1]
        is_answered = any(item["kind"] == "tool_result" for item in items[at:])
        if "call" in items[at]["text"] and not is_answered:
            call = call_of(request, "echo O%s" % number)
            if call:
                return "", call
        return "A%s answer" % number, None

    def deltas(self, text):
        """the pieces of a text, slowly if that is wanted"""
        pieces = re.findall(r".{1,4}", text, re.S) if self.server.delay else [text]
        for piece in pieces:
            time.sleep(self.server.delay)
            yield piece

    def write_responses(self, _, text, call):
        id = "c%d" % len(self.server.requests)
        if call:
            item = {"type": "function_call", "id": "f" + id, "name": call[0], "arguments": json.dumps(call[1]), "call_id": id}
        else:
            item = {"type": "message", "id": "m" + id, "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]}
        self.start()
        self.event({"type": "response.created", "response": {"id": "r" + id}})
        for piece in self.deltas(text):
            if self.server.delay:
                self.event({"type": "response.output_text.delta", "item_id": "m" + id, "output_index": 0, "content_index": 0, "delta": piece})
        self.event({"type": "response.output_item.done", "output_index": 0, "item": item})
        self.event({"type": "response.completed", "response": {"id": "r" + id, "status": "completed", "output": [item], "usage": USAGE}})
        self.end()

    def write_messages(self, request, text, call):
        id = "msg_%d" % len(self.server.requests)
        block = {"type": "tool_use", "id": "toolu_%d" % len(self.server.requests), "name": call[0], "input": {}} if call else {"type": "text", "text": ""}
        pieces = [{"type": "input_json_delta", "partial_json": json.dumps(call[1])}] if call else [{"type": "text_delta", "text": piece} for piece in self.deltas(text)]
        usage = {"input_tokens": 1, "output_tokens": 1}
        if not request.get("stream"):
            content = [{**block, "input": call[1]} if call else {"type": "text", "text": text}]
            return self.json({"id": id, "type": "message", "role": "assistant", "model": "mock", "content": content, "stop_reason": "tool_use" if call else "end_turn", "usage": usage})
        self.start()
        self.event({"type": "message_start", "message": {"id": id, "type": "message", "role": "assistant", "model": "mock", "content": [], "usage": usage}})
        self.event({"type": "content_block_start", "index": 0, "content_block": block})
        for piece in pieces:
            self.event({"type": "content_block_delta", "index": 0, "delta": piece})
        self.event({"type": "content_block_stop", "index": 0})
        self.event({"type": "message_delta", "delta": {"stop_reason": "tool_use" if call else "end_turn"}, "usage": {"output_tokens": 1}})
        self.event({"type": "message_stop"})
        self.end()

    def write_completions(self, request, text, call):
        id = "call_%d" % len(self.server.requests)
        calls = [{"index": 0, "id": id, "type": "function", "function": {"name": call[0], "arguments": json.dumps(call[1])}}] if call else None
        reason = "tool_calls" if call else "stop"
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        of = lambda choice: {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "mock-model", "choices": [choice]}
        if not request.get("stream"):
            message = {"role": "assistant", "content": text, **({"tool_calls": calls} if call else {})}
            return self.json({**of({"index": 0, "message": message, "finish_reason": reason}), "object": "chat.completion", "usage": usage})
        self.start()
        if call:
            self.event(of({"index": 0, "delta": {"role": "assistant", "tool_calls": calls}, "finish_reason": None}), named=False)
        else:
            for piece in self.deltas(text):
                self.event(of({"index": 0, "delta": {"role": "assistant", "content": piece}, "finish_reason": None}), named=False)
        self.event({**of({"index": 0, "delta": {}, "finish_reason": reason}), "usage": usage}, named=False)
        self.chunk(b"data: [DONE]\n\n")
        self.end()

    def write_gemini(self, _, text, call):
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        parts = [[{"functionCall": {"name": call[0], "args": call[1]}}]] if call else [[{"text": piece}] for piece in self.deltas(text)]
        answers = [{"candidates": [{"content": {"role": "model", "parts": part}, "index": 0}], "usageMetadata": usage, "modelVersion": "mock"} for part in parts]
        answers[-1]["candidates"][0]["finishReason"] = "STOP"
        if "stream" not in self.path:
            answers[-1]["candidates"][0]["content"]["parts"] = [{"text": text}] if not call else parts[0]
            return self.json(answers[-1])
        self.start()
        for answer in answers:
            self.event(answer, named=False)
        self.end()

    def do_GET(self):
        model = {"id": "mock-model", "object": "model", "name": "mock-model"}
        self.json({"object": "list", "data": [model], "models": []})

    def json(self, value):
        text = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def start(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def event(self, event, named=True):
        name = "event: %s\n" % event["type"] if named else ""
        self.chunk(("%sdata: %s\n\n" % (name, json.dumps(event))).encode())

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def end(self):
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def log_message(self, *_):
        pass


class ScriptedModel:
    """the model as a server; `requests` are those that it got, `items` what each has"""

    def __init__(self, delay=0, fixed=None):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
        self.server.requests, self.server.items, self.server.delay, self.server.fixed = [], [], delay, fixed
        self.server.handle_error = lambda *_: None
        self.port, self.requests, self.items = self.server.server_port, self.server.requests, self.server.items
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class AppServer:
    """the app server of Codex, over its input and output"""

    def __init__(self, codex, home, cwd):
        environment = {"HOME": str(home.parent), "CODEX_HOME": str(home), "PATH": os.environ["PATH"]}
        self.process = subprocess.Popen([codex, "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=cwd, env=environment, text=True)
        self.timer = threading.Timer(TIMEOUT, self.process.kill)
        self.timer.start()
        self.number = 0
        self.call("initialize", {"clientInfo": {"name": "experiment", "title": "experiment", "version": "1"}, "capabilities": {"experimentalApi": True}})
        self.send({"method": "initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def messages(self):
        for line in self.process.stdout:
            yield json.loads(line)
        raise RuntimeError("Codex ended")

    def call(self, method, parameters):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": parameters})
        for message in self.messages():
            if message.get("id") == self.number and "method" not in message:
                if "error" in message:
                    raise RuntimeError("%s: %s" % (method, message["error"]))
                return message["result"]

    def wait(self, method):
        for message in self.messages():
            if message.get("method") == method:
                return message["params"]

    def close(self):
        self.timer.cancel()
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
