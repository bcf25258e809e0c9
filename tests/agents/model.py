#!/usr/bin/env python3
"""A model that says what a script tells it to: enough of four APIs to make a real agent call its tools.

    model.py SCRIPT PORT-FILE [--tls CERTIFICATE KEY] [--listen ADDRESS:PORT]

SCRIPT is a JSON object of cases, each a list of tool calls {"tool": name, "input": {...}}. The words "case NAME" in a
prompt begin a case: the n-th answer after it is its n-th call, and after the last one the model says "done with NAME" and
stops. Where a conversation stands is read off the request, so the server keeps no state. The port it listens on is written
to PORT-FILE. With MODEL_LOG every request is appended there.
"""

import argparse
import base64
import hashlib
import json
import os
import re
import ssl
import struct
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OPTIONS = argparse.ArgumentParser()
OPTIONS.add_argument("script")
OPTIONS.add_argument("port_file")
OPTIONS.add_argument("--tls", nargs=2)
OPTIONS.add_argument("--listen", default="127.0.0.1:0")
ARGS = OPTIONS.parse_args()
with open(ARGS.script, encoding="utf-8") as script:
    CASES = json.load(script)

def place(texts, results, has_tools):
    """What comes now: the call, its id, and what is said where there is none.

    `texts` are what the person said, `results` the ids of the calls that have an answer. A call's id has its case in it, so
    nothing hangs on how an agent orders its messages, or on how often it repeats one.
    """
    begun = [name for text in texts for name in re.findall(r"\bcase (\w+)", text) if name in CASES]
    if not begun:
        return None, "none", "hello from the model"
    name = begun[-1]
    done = sum(1 for result in results if f"_{name}_" in str(result))
    step = CASES[name][done] if has_tools and done < len(CASES[name]) else None
    return step, f"call_{name}_{done}", f"done with {name}"


def parts(content):
    """The parts of a message, whichever way they are given."""
    return [{"text": content}] if isinstance(content, str) else content or []


def texts(content):
    return [part["text"] for part in parts(content) if isinstance(part.get("text"), str)]


def anthropic(body):
    users = [message for message in body.get("messages", []) if message.get("role") == "user"]
    said_by_user = [text for message in users for text in texts(message.get("content"))]
    results = [part.get("tool_use_id") for message in users for part in parts(message.get("content"))]
    step, call, said = place(said_by_user, results, body.get("tools"))
    usage = {"input_tokens": 10, "output_tokens": 10}
    message = {"id": f"msg_{call}", "type": "message", "role": "assistant", "model": body.get("model"),
               "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    if step:
        block = {"type": "tool_use", "id": f"toolu_{call}", "name": step["tool"], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(step["input"])}
    else:
        block = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": said}
    stop = "tool_use" if step else "end_turn"
    if not body.get("stream"):
        whole = dict(block, input=step["input"]) if step else {"type": "text", "text": said}
        return None, dict(message, content=[whole], stop_reason=stop)
    events = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    return [(event["type"], event) for event in events], None


def responses(body):
    """OpenAI's Responses API."""
    kinds = ("function_call_output", "custom_tool_call_output")
    items = [item for item in body.get("input", []) if isinstance(item, dict)]
    results = [item.get("call_id") for item in items if item.get("type") in kinds]
    said_by_user = [text for item in items if item.get("role") == "user" for text in texts(item.get("content"))]
    # Newer models are told of their tools in the conversation.
    tools = body.get("tools") or [tool for item in items for tool in item.get("tools") or []]
    wanted = (body.get("text") or {}).get("format") or {}
    # A question that wants JSON (a title of the conversation) gets some, and no call.
    is_json = wanted.get("type") == "json_schema"
    step, call, said = place(said_by_user, results, tools and not is_json)
    if is_json:
        said = json.dumps({name: "a title" for name in wanted.get("schema", {}).get("required", [])})
    if step is None:
        item = {"type": "message", "role": "assistant", "id": f"msg_{call}",
                "content": [{"type": "output_text", "text": said}]}
    elif isinstance(step["input"], str):
        item = {"type": "custom_tool_call", "id": f"ctc_{call}", "call_id": call,
                "name": step["tool"], "input": step["input"]}
    else:
        item = {"type": "function_call", "id": f"fc_{call}", "call_id": call,
                "name": step["tool"], "arguments": json.dumps(step["input"])}
    answer = {"id": f"resp_{call}", "object": "response", "status": "completed", "output": [item],
              "usage": {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1,
                        "output_tokens_details": None, "total_tokens": 2}}
    events = [
        {"type": "response.created", "response": {"id": answer["id"]}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": answer},
    ]
    return [(event["type"], event) for event in events], None


def chat(body):
    """OpenAI's chat completions."""
    messages = body.get("messages", [])
    results = [message.get("tool_call_id") for message in messages]
    users = [message for message in messages if message.get("role") == "user"]
    said_by_user = [text for message in users for text in texts(message.get("content"))]
    step, call, said = place(said_by_user, results, body.get("tools"))
    base = {"id": f"chat_{call}", "object": "chat.completion.chunk", "created": 1, "model": body.get("model")}
    if step:
        made = {"index": 0, "id": call, "type": "function",
                "function": {"name": step["tool"], "arguments": json.dumps(step["input"])}}
        message = {"role": "assistant", "content": None, "tool_calls": [made]}
    else:
        message = {"role": "assistant", "content": said}
    stop = "tool_calls" if step else "stop"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": stop}
        return None, dict(base, object="chat.completion", choices=[choice], usage=usage)
    return [
        (None, dict(base, choices=[{"index": 0, "delta": message, "finish_reason": None}])),
        (None, dict(base, choices=[{"index": 0, "delta": {}, "finish_reason": stop}], usage=usage)),
        (None, "[DONE]"),
    ], None


def gemini(body, stream):
    contents = [part for content in body.get("contents", []) for part in content.get("parts", [])]
    results = [part["functionResponse"].get("id") for part in contents if "functionResponse" in part]
    step, call, said = place([part.get("text") or "" for part in contents], results, body.get("tools"))
    if step:
        part = {"functionCall": {"id": call, "name": step["tool"], "args": step["input"]},
                "thoughtSignature": "c2ln"}
    else:
        part = {"text": said}
    # A question that wants JSON (which model to take, whether to go on) gets some.
    if body.get("generationConfig", {}).get("responseMimeType") == "application/json":
        part = {"text": json.dumps({"reasoning": "none", "model_choice": "flash", "next_speaker": "user",
                                    "complexity_reasoning": "none", "complexity_score": 1})}
    answer = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
              "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}
    return ([(None, answer)], None) if stream else (None, answer)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body, kind="application/json"):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_HEAD(self):
        self.answer(b"")

    def do_GET(self):
        if self.headers.get("upgrade", "").lower() == "websocket" and self.path.split("?")[0].endswith("/responses"):
            return self.converse()
        return self.answer(json.dumps({"data": [{"id": "fake", "object": "model"}], "models": []}).encode())

    def log_request_body(self, raw):
        if os.environ.get("MODEL_LOG"):
            with open(os.environ["MODEL_LOG"], "a", encoding="utf-8") as log:
                log.write(f"{self.path} {raw.decode(errors='replace')}\n")

    def converse(self):
        """The Responses API over a WebSocket: each request is a message, and each event. A request may go on from an
        answer of the same connection, so here the model remembers what was said."""
        key = self.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("upgrade", "websocket")
        self.send_header("connection", "upgrade")
        self.send_header("sec-websocket-accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        self.close_connection = True
        said = {}
        while (raw := self.message()) is not None:
            self.log_request_body(raw)
            body = json.loads(raw)
            body["input"] = said.get(body.get("previous_response_id"), []) + body.get("input", [])
            events, _ = responses(body)
            answer = events[-1][1]["response"]
            if body.get("generate") is False:
                # It only wants to be quick later.
                answer["output"] = []
                events = [events[0], events[-1]]
            answer["id"] = events[0][1]["response"]["id"] = f"{answer['id']}_{len(said)}"
            said[answer["id"]] = body["input"] + answer["output"]
            for _, event in events:
                self.frame(0x81, json.dumps(event).encode())

    def message(self):
        """The next message of a WebSocket; None when it ends."""
        whole = b""
        while True:
            head = self.rfile.read(2)
            if len(head) < 2:
                return None
            size = head[1] & 0x7F
            if size > 125:
                size, = struct.unpack(*((">H", self.rfile.read(2)) if size == 126 else (">Q", self.rfile.read(8))))
            mask = self.rfile.read(4)
            sent = self.rfile.read(size)
            sent = bytes(byte ^ mask[n % 4] for n, byte in enumerate(sent))
            kind = head[0] & 0x0F
            if kind == 8:
                self.frame(0x88, sent)
                return None
            if kind == 9:
                self.frame(0x8A, sent)
            elif kind in (0, 1, 2):
                whole += sent
                if head[0] & 0x80:
                    return whole

    def frame(self, first, sent):
        size = len(sent)
        if size < 126:
            head = bytes([first, size])
        elif size < 0x10000:
            head = bytes([first, 126]) + struct.pack(">H", size)
        else:
            head = bytes([first, 127]) + struct.pack(">Q", size)
        self.wfile.write(head + sent)

    def do_POST(self):
        size = int(self.headers.get("content-length") or 0)
        raw = self.rfile.read(size) if size else b""
        self.log_request_body(raw)
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            return self.answer(b"{}")
        path = self.path.split("?")[0]
        if path.endswith("/count_tokens") or path.endswith(":countTokens"):
            return self.answer(b'{"input_tokens": 1, "totalTokens": 1}')
        if path.endswith("/messages"):
            events, whole = anthropic(body)
        elif path.endswith("/responses"):
            events, whole = responses(body)
        elif path.endswith("/chat/completions"):
            events, whole = chat(body)
        elif "enerateContent" in path:
            events, whole = gemini(body, "stream" in path)
        else:
            return self.answer(b"{}")
        if whole is not None:
            return self.answer(json.dumps(whole).encode())
        text = ""
        for name, event in events:
            data = event if isinstance(event, str) else json.dumps(event)
            text += (f"event: {name}\n" if name else "") + f"data: {data}\n\n"
        return self.answer(text.encode(), "text/event-stream")


host, port = ARGS.listen.rsplit(":", 1)
server = ThreadingHTTPServer((host, int(port)), Handler)
if ARGS.tls:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*ARGS.tls)
    # Whoever connects and says nothing keeps only itself waiting.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
with open(ARGS.port_file + ".new", "w", encoding="utf-8") as out:
    out.write(str(server.server_address[1]))
os.rename(ARGS.port_file + ".new", ARGS.port_file)
server.serve_forever()
