"""A model server on loopback that says what a script tells it to, for driving real harnesses without a model.

It speaks as much of the streaming Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini APIs as
the harnesses need, keeps every request, and takes the next turn of its script for each request that offers tools.
"""

from __future__ import annotations

import itertools
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

# {"text": …} or {"tool": name, "input": {…}}; with "when", for a request that holds this text
Turn = dict[str, Any]
DONE: Turn = {"text": "done"}


class MockModel:
    """The server; `requests` holds the body of every request as JSON text."""

    def __init__(self, turns: list[Turn]) -> None:
        self.requests: list[str] = []
        self._turns = list(turns)
        self._lock = Lock()
        self._ids = itertools.count(1)
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def take(self, body: dict[str, Any]) -> Turn:
        """Keep the request and give the turn that answers it; side calls offer no tools and get no turn."""
        text = json.dumps(body, ensure_ascii=False)
        with self._lock:
            self.requests.append(text)
            return self._next(text) if body.get("tools") else DONE

    def _next(self, text: str) -> Turn:
        """The first turn that was meant for such a request, else the first that is for any."""
        meant = [turn for turn in self._turns if turn.get("when", "\0") in text]
        found = next(iter(meant or [turn for turn in self._turns if "when" not in turn]), DONE)
        self._turns = [turn for turn in self._turns if turn is not found]
        return found

    def identifier(self, prefix: str) -> str:
        """A new id."""
        return f"{prefix}_{next(self._ids):06d}"

    def seen(self, text: str) -> int:
        """In how many requests a text occurs."""
        quoted = json.dumps(text, ensure_ascii=False)[1:-1]
        with self._lock:
            return sum(text in request or quoted in request for request in self.requests)

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: MockModel

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class calls it so
        pass

    def do_HEAD(self) -> None:
        self._json({})

    def do_GET(self) -> None:
        self._json({"data": [], "models": []})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.loads(raw or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith(("/count_tokens", ":countTokens")):
            return self._json({"input_tokens": 10, "totalTokens": 10})
        turn = self.model.take(body)
        if path.endswith("/messages"):
            return self._anthropic(body, turn)
        if path.endswith("/responses"):
            return self._responses(turn)
        if path.endswith("/chat/completions"):
            return self._chat(turn)
        if path.endswith("enerateContent"):
            return self._gemini(turn, ":stream" in path)
        return self._json({})

    def _anthropic(self, body: dict[str, Any], turn: Turn) -> None:
        usage = {"input_tokens": 10, "output_tokens": 5}
        if "tool" in turn:
            block = {"type": "tool_use", "id": self.model.identifier("toolu"), "name": turn["tool"], "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(turn["input"])}
            stop = "tool_use"
        else:
            block, stop = {"type": "text", "text": ""}, "end_turn"
            delta = {"type": "text_delta", "text": turn["text"]}
        message: dict[str, Any] = {
            "id": self.model.identifier("msg"),
            "type": "message",
            "role": "assistant",
            "model": "mock",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        if not body.get("stream"):
            whole = {**block, "input": turn["input"]} if "tool" in turn else {**block, "text": turn["text"]}
            return self._json({**message, "content": [whole], "stop_reason": stop})
        ending = {"stop_reason": stop, "stop_sequence": None}
        return self._events(
            ("message_start", {"message": message}),
            ("content_block_start", {"index": 0, "content_block": block}),
            ("content_block_delta", {"index": 0, "delta": delta}),
            ("content_block_stop", {"index": 0}),
            ("message_delta", {"delta": ending, "usage": usage}),
            ("message_stop", {}),
        )

    def _responses(self, turn: Turn) -> None:
        identifier = self.model.identifier("resp")
        if "tool" in turn:
            item: dict[str, Any] = {
                "type": "function_call",
                "id": self.model.identifier("fc"),
                "call_id": self.model.identifier("call"),
                "name": turn["tool"],
                "arguments": json.dumps(turn["input"]),
            }
        else:
            content = [{"type": "output_text", "text": turn["text"], "annotations": []}]
            item = {"type": "message", "id": self.model.identifier("m"), "role": "assistant", "content": content}
        item["status"] = "completed"
        usage = {
            "input_tokens": 10,
            "output_tokens": 5,
            "total_tokens": 15,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        self._events(
            ("response.created", {"response": {"id": identifier}}),
            ("response.output_item.done", {"output_index": 0, "item": item}),
            ("response.completed", {"response": {"id": identifier, "output": [item], "usage": usage}}),
        )

    def _chat(self, turn: Turn) -> None:
        delta: dict[str, Any] = {"role": "assistant"}
        if "tool" in turn:
            function = {"name": turn["tool"], "arguments": json.dumps(turn["input"])}
            call = {"index": 0, "id": self.model.identifier("call"), "type": "function", "function": function}
            delta["tool_calls"], stop = [call], "tool_calls"
        else:
            delta["content"], stop = turn["text"], "stop"
        shared = {
            "id": self.model.identifier("chat"),
            "object": "chat.completion.chunk",
            "created": 0,
            "model": "mock",
        }
        chunks = [
            {**shared, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**shared, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]},
        ]
        self._stream("".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n")

    def _gemini(self, turn: Turn, stream: bool) -> None:
        part = (
            {"functionCall": {"name": turn["tool"], "args": turn["input"]}}
            if "tool" in turn
            else {"text": turn["text"]}
        )
        answer = {
            "candidates": [
                {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"},
            ],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        }
        if stream:
            self._stream(f"data: {json.dumps(answer)}\n\n")
        else:
            self._json(answer)

    def _events(self, *events: tuple[str, dict[str, Any]]) -> None:
        self._stream(
            "".join(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in events)
        )

    def _stream(self, text: str) -> None:
        self._send("text/event-stream", text.encode())

    def _json(self, value: object) -> None:
        self._send("application/json", json.dumps(value).encode())

    def _send(self, kind: str, data: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
