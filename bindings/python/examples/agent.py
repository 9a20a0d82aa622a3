"""A small agent: streams a reply, runs a tool, and can be killed at any point and resumed.

Usage: agent.py SESSION URL [PROMPT]. Without a prompt it continues where the session stopped. URL is that of a
server that answers POST requests with the events of a streamed reply, as the Messages API does.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

from transcript import Session, StreamReply


def stream(url: str, messages: list[Any]) -> StreamReply:
    """Send the messages, and print the texts of the reply as they arrive."""
    body = json.dumps({"messages": messages, "stream": True}).encode()
    query = urllib.request.Request(url, body, {"content-type": "application/json"})
    reply = StreamReply()
    with urllib.request.urlopen(query) as response:
        while data := response.read1(4096):
            if reply.push(data):
                break
    return reply


def run_tool(name: str, given: dict[str, Any]) -> str:
    """The only tool of this agent."""
    if name != "days":
        return f"there is no tool {name}"
    year = int(given["year"])
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return "366 days" if is_leap else "365 days"


def main(path: str, url: str, prompt: str | None) -> None:
    if Path(path).exists():
        session = Session.resume(path, cwd=".", version="1.0.0")
    else:
        session = Session.create(path, cwd=".", version="1.0.0")
    with session:
        if prompt is not None:
            session.append(user=prompt)
        while True:
            reply = stream(url, session.request()["messages"])
            result = reply.result()
            session.append_reply(reply)
            for call in result["toolCalls"]:
                content = run_tool(call["name"], call["input"])
                block = {"type": "tool_result", "tool_use_id": call["id"], "content": content}
                session.append({"type": "user", "message": {"role": "user", "content": [block]}})
            if not result["toolCalls"]:
                break
        session.end_turn(prompt)
        for block in result["message"]["content"]:
            print(block.get("text", ""))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
