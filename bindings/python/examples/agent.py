"""A small agent: streams a reply, runs a tool, and can be killed at any point and resumed.

Usage: agent.py SESSION URL [PROMPT]. Without a prompt it continues where the session stopped. URL is that of a
server that answers POST requests with the events of a streamed reply, as the Messages API does.
"""

from __future__ import annotations

import http.client
import json
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from transcript_engine import Session, StreamReply


def stream(url: str, messages: list[Any]) -> StreamReply:
    """Send the messages, and assemble the reply as it arrives. The connection may end before the reply does."""
    body = json.dumps({"messages": messages, "stream": True}).encode()
    query = urllib.request.Request(url, body, {"content-type": "application/json"})
    reply = StreamReply()
    with urllib.request.urlopen(query) as response:
        try:
            while data := response.read1(4096):
                if reply.push(data):
                    break
        except (OSError, http.client.HTTPException):
            pass
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
            start = time.monotonic()
            reply = stream(url, session.request()["messages"])
            result = reply.result()
            if result["state"] != "nothing":
                session.append_reply(reply)
            if result["state"] != "whole":
                # None of its calls runs. Started again, the agent tells the model that they were cut.
                raise SystemExit("the reply was cut; run again without a prompt to continue")
            session.count(reply=result["message"], api_ms=1000 * (time.monotonic() - start))
            # A whole reply may still have calls in `partialCalls`; the next request says that they did not run.
            for call in result["toolCalls"]:
                content = run_tool(call["name"], call["input"])
                session.append_tool_result(call["id"], content)
            if not result["toolCalls"] and not result["partialCalls"]:
                break
        session.end_turn(prompt)
        for block in result["message"]["content"]:
            print(block.get("text", ""))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
