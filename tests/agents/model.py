#!/usr/bin/env python3
"""A model on loopback that says what a script tells it to: enough of four APIs to make a real agent call its tools.

    model.py SCRIPT PORT-FILE

SCRIPT is a JSON list of tool calls, each {"tool": name, "input": {...}}. The n-th answer in a conversation is the n-th
call; after the last one the model says "done" and stops. What step a conversation is at is read off the request (how many
tool results it carries), so the server keeps no state. The port it listens on is written to PORT-FILE.
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STEPS = json.load(open(sys.argv[1], encoding="utf-8"))


def step_of(results, has_tools):
    """The call that comes now, or none."""
    if not has_tools or results >= len(STEPS):
        return None
    return STEPS[results]


def anthropic(body):
    results = sum(
        1
        for message in body.get("messages", [])
        if isinstance(message.get("content"), list)
        for part in message["content"]
        if part.get("type") == "tool_result"
    )
    step = step_of(results, body.get("tools"))
    usage = {"input_tokens": 10, "output_tokens": 10}
    message = {"id": f"msg_{results}", "type": "message", "role": "assistant", "model": body.get("model"),
               "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    if step:
        block = {"type": "tool_use", "id": f"toolu_{results}", "name": step["tool"], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(step["input"])}
    else:
        block = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": "done"}
    stop = "tool_use" if step else "end_turn"
    if not body.get("stream"):
        whole = dict(block, input=step["input"]) if step else {"type": "text", "text": "done"}
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
    results = sum(1 for item in body.get("input", []) if isinstance(item, dict) and item.get("type") in kinds)
    step = step_of(results, body.get("tools"))
    if step is None:
        item = {"type": "message", "role": "assistant", "id": f"msg_{results}",
                "content": [{"type": "output_text", "text": "done"}]}
    elif isinstance(step["input"], str):
        item = {"type": "custom_tool_call", "id": f"ctc_{results}", "call_id": f"call_{results}",
                "name": step["tool"], "input": step["input"]}
    else:
        item = {"type": "function_call", "id": f"fc_{results}", "call_id": f"call_{results}",
                "name": step["tool"], "arguments": json.dumps(step["input"])}
    answer = {"id": f"resp_{results}", "object": "response", "status": "completed", "output": [item],
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
    results = sum(1 for message in body.get("messages", []) if message.get("role") == "tool")
    step = step_of(results, body.get("tools"))
    base = {"id": f"chat_{results}", "object": "chat.completion.chunk", "created": 1, "model": body.get("model")}
    if step:
        call = {"index": 0, "id": f"call_{results}", "type": "function",
                "function": {"name": step["tool"], "arguments": json.dumps(step["input"])}}
        said = {"role": "assistant", "content": None, "tool_calls": [call]}
    else:
        said = {"role": "assistant", "content": "done"}
    stop = "tool_calls" if step else "stop"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    if not body.get("stream"):
        choice = {"index": 0, "message": said, "finish_reason": stop}
        return None, dict(base, object="chat.completion", choices=[choice], usage=usage)
    return [
        (None, dict(base, choices=[{"index": 0, "delta": said, "finish_reason": None}])),
        (None, dict(base, choices=[{"index": 0, "delta": {}, "finish_reason": stop}], usage=usage)),
        (None, "[DONE]"),
    ], None


def gemini(body, stream):
    parts = [part for content in body.get("contents", []) for part in content.get("parts", [])]
    results = sum(1 for part in parts if "functionResponse" in part)
    step = step_of(results, body.get("tools"))
    if step:
        part = {"functionCall": {"id": f"call_{results}", "name": step["tool"], "args": step["input"]},
                "thoughtSignature": "c2ln"}
    else:
        part = {"text": "done"}
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
        self.answer(json.dumps({"data": [{"id": "fake", "object": "model"}], "models": []}).encode())

    def do_POST(self):
        size = int(self.headers.get("content-length") or 0)
        raw = self.rfile.read(size) if size else b""
        if os.environ.get("MODEL_LOG"):
            with open(os.environ["MODEL_LOG"], "a", encoding="utf-8") as log:
                log.write(f"{self.path} {raw.decode(errors='replace')}\n")
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


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(sys.argv[2] + ".new", "w", encoding="utf-8") as out:
    out.write(str(server.server_address[1]))
os.rename(sys.argv[2] + ".new", sys.argv[2])
server.serve_forever()
