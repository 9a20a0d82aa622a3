"""A stand-in for the Messages API: answers with a streamed call of a tool, then with a text about its result.

Before the last event of a reply it calls `pause`, so that a test can end the client there.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def _events(messages: list[Any]) -> list[dict[str, Any]]:
    results = [
        block["content"]
        for message in messages
        if isinstance(message["content"], list)
        for block in message["content"]
        # Not the notes about calls that did not run.
        if block["type"] == "tool_result" and not str(block["content"]).startswith("[Tool call ")
    ]
    number = len(messages)
    start = {
        "type": "message_start",
        "message": {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 1},
        },
    }
    if results:
        last = results[-1]
        text = last if isinstance(last, str) else "".join(part.get("text", "") for part in last)
        block: dict[str, Any] = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in ("The year has ", text, ".")]
        stop = "end_turn"
    else:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": "days", "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ('{"ye', 'ar": 2000}')]
        stop = "tool_use"
    return [
        start,
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]


def streamed(messages: list[Any]) -> bytes:
    """The bytes of the answer to these messages."""
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in _events(messages))


class ScriptedModel:
    """A server on a free port of this machine. `requests` has the messages that it was sent."""

    def __init__(self, pause: Callable[[int], None] = lambda number: None) -> None:
        self.requests: list[list[Any]] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                messages = json.loads(body)["messages"]
                model.requests.append(messages)
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                events = _events(messages)
                for event in events[:-1]:
                    self._send(event)
                pause(len(model.requests))
                self._send(events[-1])

            def _send(self, event: dict[str, Any]) -> None:
                try:
                    self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
                    self.wfile.flush()
                except OSError:
                    # The client was killed.
                    pass

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/messages"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


if __name__ == "__main__":
    # For tests in other languages: prints its address, and serves until its input ends.
    import sys

    served = ScriptedModel()
    print(served.url, flush=True)
    sys.stdin.read()
    served.close()
