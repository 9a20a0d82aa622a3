"""Runs the tests of ``claude-agent-sdk`` with the functions of this package in the place of its own.

Load it with ``-p sdk_plugin``. The tests are those of the SDK's source distribution: see ``tools/sdk_tests.py``.
Results become the types of the SDK, because its tests compare them.
"""

from __future__ import annotations

from typing import Any

import claude_agent_sdk as sdk
import pytest

import transcript


def _info(info: transcript.SDKSessionInfo | None) -> Any:
    return None if info is None else sdk.SDKSessionInfo(**vars(info))


def _messages(messages: list[transcript.SessionMessage]) -> list[Any]:
    return [
        sdk.SessionMessage(
            type=message.type,
            uuid=message.uuid,
            session_id=message.session_id,
            message=message.message,
            parent_tool_use_id=message.parent_tool_use_id,
            parent_agent_id=message.parent_agent_id,
        )
        for message in messages
    ]


FUNCTIONS: dict[str, Any] = {
    "list_sessions": lambda *args, **kwargs: [_info(info) for info in transcript.list_sessions(*args, **kwargs)],
    "get_session_info": lambda *args, **kwargs: _info(transcript.get_session_info(*args, **kwargs)),
    "get_session_messages": lambda *args, **kwargs: _messages(transcript.get_session_messages(*args, **kwargs)),
    "list_subagents": transcript.list_subagents,
    "get_subagent_messages": lambda *args, **kwargs: _messages(transcript.get_subagent_messages(*args, **kwargs)),
    "rename_session": transcript.rename_session,
    "tag_session": transcript.tag_session,
    "delete_session": transcript.delete_session,
    "fork_session": transcript.fork_session,
}


@pytest.fixture(autouse=True)
def _replaced(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    for name, function in FUNCTIONS.items():
        if hasattr(request.module, name):
            monkeypatch.setattr(request.module, name, function)
