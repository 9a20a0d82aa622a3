"""Sessions of other agents, by the options ``agent`` and ``root``."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import unittest
from pathlib import Path
from typing import Any

import transcript_engine as transcript

TIME = "2026-03-01T09:00:00.000Z"
CODEX = "10000000-0000-7000-8000-000000000001"
PI = "20000000-0000-7000-8000-000000000002"


def write(path: Path, records: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def write_codex(home: Path) -> None:
    def record(ordinal: int, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        return {"timestamp": TIME, "ordinal": ordinal, "type": kind, "payload": payload}

    def message(role: str, kind: str, text: str) -> dict[str, Any]:
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    usage = {"input_tokens": 1000, "cached_input_tokens": 400, "output_tokens": 100, "reasoning_output_tokens": 10}
    header = {"id": CODEX, "timestamp": TIME, "cwd": "/src", "originator": "o", "cli_version": "1", "source": "cli"}
    write(
        home / f"sessions/2026/03/01/rollout-2026-03-01T09-00-00-{CODEX}.jsonl",
        [
            record(0, "session_meta", header),
            record(1, "turn_context", {"model": "gpt-5"}),
            record(2, "response_item", message("user", "input_text", "ask codex")),
            record(3, "response_item", message("assistant", "output_text", "tell codex")),
            record(4, "token_usage_record", {"turn_id": "t", "response_id": "r", "usage": usage}),
        ],
    )


def write_pi(home: Path) -> Path:
    def message(number: str, parent: str | None, role: str, text: str) -> dict[str, Any]:
        content = {"role": role, "model": "pi-test", "content": [{"type": "text", "text": text}]}
        return {"type": "message", "id": number, "parentId": parent, "timestamp": TIME, "message": content}

    path = home / f"sessions/--src--/2026_{PI}.jsonl"
    write(
        path,
        [
            {"type": "session", "version": 3, "id": PI, "timestamp": TIME, "cwd": "/src"},
            message("a", None, "user", "ask pi"),
            message("b", "a", "assistant", "tell pi"),
            message("c", "b", "user", "rewound question"),
            message("d", "b", "user", "ask again"),
            message("e", "d", "assistant", "tell again"),
        ],
    )
    return path


def write_opencode(home: Path) -> str:
    """Writes a database with one session, as far as it is read."""
    home.mkdir(parents=True)
    with sqlite3.connect(home / "opencode.db") as database:
        database.executescript(
            """
            CREATE TABLE session (id text PRIMARY KEY, directory text, title text, version text, parent_id text,
                time_created integer, time_updated integer);
            CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
            CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer,
                time_updated integer, data text);
            INSERT INTO session VALUES ('ses_1', '/src', 'About the moon', '1', NULL, 1, 3);
            """
        )
        for number, (role, text) in enumerate([("user", "ask opencode"), ("assistant", "tell opencode")], 1):
            info = json.dumps({"role": role, "modelID": "m", "finish": "stop"})
            database.execute("INSERT INTO message VALUES (?, 'ses_1', ?, ?, ?)", (f"msg_{number}", number, number, info))
            part = json.dumps({"type": "text", "text": text})
            values = (f"prt_{number}", f"msg_{number}", number, number, part)
            database.execute("INSERT INTO part VALUES (?, ?, 'ses_1', ?, ?, ?)", values)
    database.close()
    return "ses_1"


class Agents(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = Path(folder.name) / "home"

    def texts(self, session: str, agent: str, **options: Any) -> list[str]:
        records = transcript.entries(session, agent=agent, root=self.home, **options)
        contents = [record["message"]["content"] for record in records if record["kind"] == "entry" and record["message"]]
        return [content if isinstance(content, str) else content[0]["text"] for content in contents]

    def test_a_session_of_another_agent_is_listed_read_found_and_counted(self) -> None:
        write_codex(self.home)
        place: Any = {"agent": "codex", "root": self.home}
        (listed,) = transcript.sessions(**place)
        self.assertEqual((listed["sessionId"], listed.get("agent"), listed["firstPrompt"]), (CODEX, "codex", "ask codex"))
        self.assertEqual(self.texts(CODEX, "codex"), ["ask codex", "tell codex"])
        request: Any = transcript.request(CODEX, **place)
        self.assertTrue(request["resumable"])
        self.assertEqual([message["role"] for message in request["messages"]], ["user", "assistant"])
        items: Any = transcript.items(CODEX, **place)
        texts = [(item["kind"], item["text"]) for item in items["live"]]
        self.assertEqual(texts, [("user", "ask codex"), ("assistant", "tell codex")])
        hits = [record for record in transcript.search('"tell codex"', cache=False, **place) if record["kind"] == "hit"]
        self.assertEqual([hit["sessionId"] for hit in hits], [CODEX])
        rows: Any = [row for row in transcript.usage(by=["maker", "model"], cache=False, **place) if row["kind"] == "row"]
        self.assertEqual(rows[0]["by"], {"maker": "codex", "model": "gpt-5"})
        self.assertEqual((rows[0]["input"], rows[0]["cacheRead"], rows[0]["output"]), (600, 400, 100))
        # 1.25, 0.125 and 10 dollars for a million.
        self.assertEqual(rows[0]["costNanoUsd"], 600 * 1250 + 400 * 125 + 100 * 10_000)
        (verdict,) = transcript.verify(CODEX, **place)
        self.assertEqual((verdict.get("agent"), verdict["verdict"]), ("codex", "clean"))

    def test_branches_are_in_the_tree_and_nothing_changes_the_session(self) -> None:
        path = write_pi(self.home)
        before = path.read_bytes()
        tree: Any = transcript.tree(PI, agent="pi", root=self.home)
        self.assertEqual(len([branch for branch in tree["branches"] if branch["tip"]]), 2)
        self.assertEqual(self.texts(PI, "pi"), ["ask pi", "tell pi", "ask again", "tell again"])
        (branch,) = transcript.items(PI, agent="pi", root=self.home)["branches"]
        self.assertEqual([item.get("text") for item in branch], ["rewound question"])
        with self.assertRaisesRegex(transcript.TranscriptError, "a session of pi"):
            transcript.fork(PI, agent="pi", root=self.home)
        self.assertEqual(path.read_bytes(), before)

    def test_a_damaged_session_is_read_by_either_policy(self) -> None:
        path = write_pi(self.home)
        lines = path.read_text().splitlines(keepends=True)
        # Without the message that two others answer Pi loses what is above.
        path.write_text("".join(lines[:2] + lines[3:]))
        self.assertEqual(self.texts(PI, "pi"), ["ask pi", "ask again", "tell again"])
        self.assertEqual(self.texts(PI, "pi", policy="vendor"), ["ask again", "tell again"])
        trees: Any = [transcript.tree(PI, agent="pi", root=self.home, policy=policy) for policy in ("recover", "vendor")]
        self.assertNotEqual(trees[0]["branches"], trees[1]["branches"])

    def test_a_database_is_read(self) -> None:
        session = write_opencode(self.home)
        before = (self.home / "opencode.db").read_bytes()
        (listed,) = transcript.sessions(agent="opencode", root=self.home)
        self.assertEqual((listed["sessionId"], listed["title"]), (session, "About the moon"))
        self.assertEqual(self.texts(session, "opencode"), ["ask opencode", "tell opencode"])
        self.assertEqual((self.home / "opencode.db").read_bytes(), before)

    def test_an_unknown_agent_is_refused_by_its_name(self) -> None:
        with self.assertRaisesRegex(transcript.TranscriptError, "nobody"):
            transcript.sessions(agent="nobody", root=self.home)


if __name__ == "__main__":
    unittest.main()
