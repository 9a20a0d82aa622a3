"""Runs the tests of ``claude-agent-sdk`` with the functions of this package in the place of its own.

A plugin of pytest: ``experiments/bindings_sdk_tests.py`` loads it. Results become the types of the SDK, because its tests compare
them. With ``TRANSCRIPT_SDK_NODE``, the folder of an npm project, every call goes to the npm package there.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
from typing import Any

import claude_agent_sdk as sdk
import pytest

import transcript_engine as transcript

NAMES = [
    "list_sessions",
    "get_session_info",
    "get_session_messages",
    "list_subagents",
    "get_subagent_messages",
    "rename_session",
    "tag_session",
    "delete_session",
    "fork_session",
]

RUNNER = """
const readline = require('node:readline');
const t = require('transcript-engine');
(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [name, args] = JSON.parse(line);
    let answer;
    try {
      answer = { result: (await t[name](...args)) ?? null };
    } catch (error) {
      answer = { error: error.constructor.name, message: error.message };
    }
    process.stdout.write(JSON.stringify(answer) + '\\n');
  }
})();
"""
ERRORS = {"InvalidError": ValueError, "NotFoundError": FileNotFoundError}


class Node:
    """A process of Node in which functions are called by their names in JavaScript."""

    def __init__(self, project: str) -> None:
        self._process = subprocess.Popen(
            ["node", "-e", RUNNER], cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def call(self, name: str, arguments: list[Any]) -> Any:
        head, *rest = name.split("_")
        name = head + "".join(word.capitalize() for word in rest)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write((json.dumps([name, arguments]) + "\n").encode())
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            # The tests expect the names of Python in messages.
            message = answer["message"].replace("sessionId", "session_id").replace("upToMessageId", "up_to_message_id")
            raise ERRORS.get(answer["error"], RuntimeError)(message)
        return answer["result"]


def _info(info: transcript.SDKSessionInfo | None) -> Any:
    return None if info is None else sdk.SDKSessionInfo(**vars(info))


def _message(fields: Any) -> Any:
    names = ["type", "uuid", "session_id", "message", "parent_tool_use_id", "parent_agent_id"]
    return sdk.SessionMessage(**{name: fields[name] for name in names})


def in_python(name: str) -> Any:
    function = getattr(transcript, name)

    def run(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if name == "list_sessions":
            return [_info(info) for info in result]
        if name == "get_session_info":
            return _info(result)
        if name.endswith("_messages"):
            fields = ["type", "uuid", "session_id", "message", "parent_tool_use_id", "parent_agent_id"]
            return [_message({field: getattr(message, field) for field in fields}) for message in result]
        return result

    return run


def in_node(node: Node, name: str) -> Any:
    signature = inspect.signature(getattr(sdk, name))
    info_names = {
        "session_id": "sessionId",
        "summary": "summary",
        "last_modified": "lastModified",
        "file_size": "fileSize",
        "custom_title": "customTitle",
        "first_prompt": "firstPrompt",
        "git_branch": "gitBranch",
        "cwd": "cwd",
        "tag": "tag",
        "created_at": "createdAt",
    }

    def info(fields: Any) -> Any:
        if fields is None:
            return None
        return sdk.SDKSessionInfo(**{python: fields.get(node) for python, node in info_names.items()})

    def run(*args: Any, **kwargs: Any) -> Any:
        given = dict(signature.bind(*args, **kwargs).arguments)
        positional = [given.pop(key) for key in ("session_id", "agent_id") if key in given]
        if name in ("rename_session", "tag_session"):
            positional.append(given.pop("title" if name == "rename_session" else "tag"))
        options = {
            {"directory": "dir", "include_worktrees": "includeWorktrees", "up_to_message_id": "upToMessageId"}.get(key, key): value
            for key, value in given.items()
            if value is not None
        }
        config = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")
        result = node.call(name, [*positional, {**options, "root": os.path.join(config, "projects")}])
        if name == "list_sessions":
            return [info(row) for row in result]
        if name == "get_session_info":
            return info(result)
        if name.endswith("_messages"):
            return [_message(message) for message in result]
        if name == "fork_session":
            return transcript.ForkSessionResult(session_id=result["sessionId"])
        return result

    return run


PROJECT = os.environ.get("TRANSCRIPT_SDK_NODE")
if PROJECT:
    NODE = Node(PROJECT)
    FUNCTIONS = {name: in_node(NODE, name) for name in NAMES}
else:
    FUNCTIONS = {name: in_python(name) for name in NAMES}


@pytest.fixture(autouse=True)
def replaced(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, function in FUNCTIONS.items():
        if hasattr(request.module, name):
            monkeypatch.setattr(request.module, name, function)
