"""The session functions of the SDK."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import pickle
import tempfile
import unittest
from pathlib import Path

import transcript_engine as transcript

ID = "1999463e-ee08-4b08-99d5-2d9a36fd8293"


def entry(kind: str, uuid: str, parent: str | None, content: object, **more: object) -> str:
    fields = {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": ID,
        "timestamp": "2026-03-01T09:00:00.000Z",
        "message": {"role": kind, "content": content},
        **more,
    }
    return json.dumps(fields)


class Store(unittest.TestCase):
    """A store with one project."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name) / "projects"
        self.project = self.root / "-work"
        self.project.mkdir(parents=True)

    def write(self, *lines: str, session: str = ID) -> Path:
        path = self.project / f"{session}.jsonl"
        path.write_text("".join(line + "\n" for line in lines))
        return path


class Reading(Store):
    def test_a_session_is_listed_and_its_messages_are_in_order(self) -> None:
        self.write(
            entry("user", "u1", None, "Which years have a leap day?", cwd="/work"),
            entry("assistant", "a1", "u1", "Most fourth ones."),
        )
        (info,) = transcript.list_sessions(root=self.root)
        self.assertEqual((info.session_id, info.summary, info.cwd), (ID, "Which years have a leap day?", "/work"))
        self.assertEqual(info.created_at, 1772355600000)
        self.assertEqual(transcript.get_session_info(ID, root=self.root), info)
        messages = transcript.get_session_messages(ID, root=self.root)
        self.assertEqual([message.type for message in messages], ["user", "assistant"])
        self.assertEqual(messages[1].message, {"role": "assistant", "content": "Most fourth ones."})
        self.assertEqual(messages[1].parent_uuid, "u1")
        page = transcript.get_session_messages(ID, limit=1, offset=1, root=self.root)
        self.assertEqual(page, messages[1:])

    def test_messages_are_dataclasses_that_can_be_copied(self) -> None:
        self.write(entry("user", "u1", None, "one"), entry("assistant", "a1", "u1", "1"))
        expected = transcript.get_session_messages(ID, root=self.root)[1]
        self.assertEqual(expected.message["content"], "1")
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            message = transcript.get_session_messages(ID, root=self.root)[1]
            self.assertEqual(pickle.loads(pickle.dumps(message, protocol)), expected)
        for make in (copy.copy, copy.deepcopy, dataclasses.replace):
            self.assertEqual(make(transcript.get_session_messages(ID, root=self.root)[1]), expected)
        self.assertEqual(dataclasses.asdict(expected)["message"], expected.message)
        self.assertIn("'content': '1'", repr(expected))
        before = expected.raw
        self.assertEqual(json.loads(before), expected.message)
        expected.message = {"role": "assistant", "content": "other"}
        self.assertEqual(json.loads(expected.raw), expected.message)

    def test_nobody_has_no_messages(self) -> None:
        self.write(entry("user", "u1", None, "one"))
        self.assertEqual(transcript.get_subagent_messages(ID, "", root=self.root), [])
        self.assertEqual(transcript.list_sessions(Path("/nowhere"), limit=10**30, root=self.root), [])

    def test_messages_that_the_client_loses_are_returned_except_under_policy_vendor(self) -> None:
        # Nobody wrote the parent of the second prompt.
        self.write(
            entry("user", "u1", None, "one"),
            entry("assistant", "a1", "u1", "1"),
            entry("user", "u2", "gone", "two"),
            entry("assistant", "a2", "u2", "2"),
        )
        everything = transcript.get_session_messages(ID, root=self.root)
        self.assertEqual([message.uuid for message in everything], ["u1", "a1", "u2", "a2"])
        vendor = transcript.get_session_messages(ID, policy="vendor", root=self.root)
        self.assertNotIn("a1", [message.uuid for message in vendor])

    def test_every_value_of_json_survives(self) -> None:
        contents = ['"\\ud800 lone"', '"\\u0000"', "9007199254740993", "1e999", '"' + "x" * 70_000 + '"']
        lines = [
            f'{{"type":"user","uuid":"u{n}","parentUuid":{json.dumps(f"u{n - 1}") if n else "null"},'
            f'"sessionId":"{ID}","timestamp":"2026-03-01T09:00:00.000Z",'
            f'"message":{{"role":"user","content":{content}}}}}'
            for n, content in enumerate(contents)
        ]
        self.write(*lines)
        messages = transcript.get_session_messages(ID, root=self.root)
        found = [message.message["content"] for message in messages]
        self.assertEqual(found, [json.loads(content) for content in contents])
        self.assertEqual(messages[2].raw, b'{"role":"user","content":9007199254740993}')

    def test_an_unknown_session_has_nothing(self) -> None:
        self.assertEqual(transcript.list_sessions(root=self.root / "missing"), [])
        self.assertIsNone(transcript.get_session_info(ID, root=self.root))
        self.assertEqual(transcript.get_session_messages("no id", root=self.root), [])
        self.assertEqual(transcript.list_subagents(ID, root=self.root), [])

    def test_subagents_have_their_parents(self) -> None:
        self.write(entry("user", "u1", None, "go"))
        folder = self.project / ID / "subagents"
        folder.mkdir(parents=True)
        (folder / "agent-abc.jsonl").write_text(
            entry("user", "s1", None, "task", isSidechain=True, agentId="abc")
            + "\n"
            + entry("assistant", "s2", "s1", "done", isSidechain=True, agentId="abc")
            + "\n"
        )
        (folder / "agent-abc.meta.json").write_text('{"toolUseId":"toolu_1","agentType":"general"}')
        self.assertEqual(transcript.list_subagents(ID, root=self.root), ["abc"])
        messages = transcript.get_subagent_messages(ID, "abc", root=self.root)
        self.assertEqual([message.uuid for message in messages], ["s1", "s2"])
        self.assertEqual({message.parent_tool_use_id for message in messages}, {"toolu_1"})


class Changing(Store):
    def test_title_and_tag_are_whole_lines_after_a_torn_one(self) -> None:
        path = self.write(entry("user", "u1", None, "hello"))
        with path.open("a") as file:
            file.write('{"type":"assistant","uuid":"a1","par')
        transcript.rename_session(ID, "  Löwe 🦁  ", root=self.root)
        transcript.tag_session(ID, "ﬁne\u200b", root=self.root)
        info = transcript.get_session_info(ID, root=self.root)
        assert info is not None
        self.assertEqual((info.custom_title, info.tag), ("Löwe 🦁", "fine"))
        last = path.read_text().splitlines()[-2:]
        self.assertEqual([json.loads(line)["type"] for line in last], ["custom-title", "tag"])
        transcript.tag_session(ID, None, root=self.root)
        info = transcript.get_session_info(ID, root=self.root)
        assert info is not None
        self.assertIsNone(info.tag)

    def test_refused_change_raises_the_error_of_its_class(self) -> None:
        with self.assertRaisesRegex(ValueError, "Invalid session_id: nope"):
            transcript.rename_session("nope", "x", root=self.root)
        with self.assertRaisesRegex(FileNotFoundError, "not found"):
            transcript.delete_session(ID, root=self.root)
        self.write(entry("user", "u1", None, "hello"))
        with self.assertRaisesRegex(transcript.InvalidError, "title must be non-empty") as caught:
            transcript.rename_session(ID, " \n", root=self.root)
        self.assertEqual((caught.exception.kind, caught.exception.retryable), ("blank", False))

    def test_a_fork_ends_where_it_was_asked_to(self) -> None:
        u1, a1 = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
        self.write(entry("user", u1, None, "hello"), entry("assistant", a1, u1, "hi"))
        forked = transcript.fork_session(ID, up_to_message_id=u1, root=self.root)
        messages = transcript.get_session_messages(forked.session_id, root=self.root)
        self.assertEqual([message.message["content"] for message in messages], ["hello"])
        with self.assertRaisesRegex(ValueError, "not found in session"):
            transcript.fork_session(ID, up_to_message_id=ID, root=self.root)

    def test_a_deleted_session_is_gone_with_its_folder(self) -> None:
        path = self.write(entry("user", "u1", None, "hello"))
        (self.project / ID / "tool-results").mkdir(parents=True)
        transcript.delete_session(ID, root=self.root)
        self.assertFalse(path.exists())
        self.assertEqual(os.listdir(self.project), [])


if __name__ == "__main__":
    unittest.main()
