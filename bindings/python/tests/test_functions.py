"""The commands as functions."""

from __future__ import annotations

import json
import os
import subprocess
import unittest
from collections.abc import Callable
from typing import Any

import transcript_engine as transcript

from test_sdk import ID, Store, entry

COMMAND = os.environ.get("TRANSCRIPT_COMMAND")


class Functions(Store):
    def test_a_repair_is_planned_written_and_taken_back(self) -> None:
        path = self.write(
            entry("user", "u1", None, "one"),
            entry("assistant", "a1", "u1", "1"),
            entry("user", "u2", "gone", "two"),
        )
        before = path.read_bytes()
        plan: Any = transcript.repair(path)
        self.assertTrue(plan["plan"])
        self.assertEqual(path.read_bytes(), before)
        out = self.project / "2999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl"
        transcript.repair(path, out=out)
        # Now the client shows all of it, too.
        shown = [r["message"]["content"] for r in transcript.entries(out, policy="vendor") if r["kind"] == "entry"]
        self.assertEqual(shown, ["one", "1", "two"])
        with self.assertRaises(FileExistsError):
            transcript.repair(path, out=out)

    def test_a_document_has_no_secrets_unless_asked_to(self) -> None:
        secret = "ghp_" + "a1B2c3D4e5F6" * 3
        path = self.write(entry("user", "u1", None, f"the token is {secret}"))
        for format in ("html", "markdown"):
            out = self.root / f"page.{format}"
            done = transcript.export(path, out, format=format)
            self.assertEqual(done["redactions"], 1)
            self.assertNotIn(secret, out.read_text())
            with self.assertRaises(transcript.ExistsError):
                transcript.export(path, out, format=format)
            transcript.export(path, out, format=format, force=True, redact=False)
            self.assertIn(secret, out.read_text())
        before = path.read_bytes()
        with self.assertRaisesRegex(transcript.InvalidError, "the session that is being exported"):
            transcript.export(path, path, force=True)
        with self.assertRaisesRegex(transcript.TranscriptError, "missing: no such folder"):
            transcript.export(path, self.root / "missing/page")
        self.assertEqual(path.read_bytes(), before)

    def test_a_text_is_returned_without_its_secrets(self) -> None:
        done = transcript.redact("DB_PASSWORD='my long phrase' for ada@example.org", emails=True)
        self.assertEqual(done["text"], "DB_PASSWORD='[redacted: password]' for [redacted: e-mail address]")
        self.assertEqual(done["kinds"], {"password": 1, "e-mail address": 1})
        line = json.dumps({"text": 'pin "x"', "password": 123456})
        self.assertEqual(
            json.loads(transcript.redact(line, line=True)["text"]),
            {"text": 'pin "x"', "password": "[redacted: password]"},
        )
        done = transcript.redact("DB_PASSWORD=abc1, INTERNAL_ID=abc2", also=["INTERNAL_ID"], keep=["DB_PASSWORD"])
        self.assertEqual(done["text"], "DB_PASSWORD=abc1, INTERNAL_ID=[redacted: own rule]")

    def test_a_named_file_that_is_no_session_is_refused_by_every_function(self) -> None:
        self.write(entry("user", "u1", None, "one"))
        notes = self.project / "notes.jsonl"
        notes.write_text("Buy milk.\n")
        path = str(notes)
        functions: dict[str, Callable[[], Any]] = {
            "entries": lambda: list(transcript.entries(path)),
            "search": lambda: list(transcript.search("milk", [path], cache=False)),
            "usage": lambda: transcript.usage(places=[path], cache=False),
            "verify": lambda: transcript.verify(path),
            "repair": lambda: transcript.repair(path),
            "export": lambda: transcript.export(path, self.root / "page"),
        }
        for name, function in functions.items():
            with self.subTest(name), self.assertRaisesRegex(transcript.TranscriptError, "notes.jsonl: .*without an entry"):
                function()
        refused: Any = transcript.request(path)
        self.assertFalse(refused["resumable"])
        self.assertIn("without an entry", refused["reason"])

    def test_a_request_that_is_too_long_is_made_to_fit(self) -> None:
        lines: list[str] = []
        for turn in range(8):
            parent = f"a{turn - 1}" if turn else None
            lines.append(entry("user", f"u{turn}", parent, f"Prompt {turn}. " + "word" * 1000))
            lines.append(entry("assistant", f"a{turn}", f"u{turn}", "Done."))
        path = self.write(*lines)
        whole: Any = transcript.request(path)
        self.assertIsNone(whole["tokens"]["over"])
        for fit, turns, messages in ((6000, None, 8), ("6k", None, 8), (1, None, 4), (1, 1, 2)):
            with self.subTest(fit=fit, turns=turns):
                fitted: Any = transcript.request(path, fit=fit, fit_turns=turns)
                self.assertEqual(len(fitted["messages"]), messages)
                self.assertEqual(fitted["omitted"][0]["reason"], "context-window")
        with transcript.Session.open(path, fit=6000) as session:
            self.assertEqual(len(session.request()["messages"]), 8)
        for options in ({"fit": "no-such-model"}, {"fit": 9, "policy": "vendor"}):
            with self.subTest(options), self.assertRaises(transcript.InvalidError):
                transcript.request(path, **options)  # type: ignore[arg-type]

    def test_a_request_is_made_for_a_provider(self) -> None:
        call: list[dict[str, Any]] = [
            {"type": "tool_use", "id": "t1", "name": "mcp__a.b", "input": {}}
        ]
        result = [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]
        path = self.write(
            entry("user", "u1", None, "Go."),
            entry("assistant", "a1", "u1", call),
            entry("user", "u2", "a1", result),
            entry("assistant", "a2", "u2", "Done."),
        )
        names: list[tuple[transcript.Provider | None, str]] = [
            (None, "mcp__a.b"),
            ("vertex", "mcp__a.b"),
            ("converse", "mcp__a_b"),
        ]
        for provider, name in names:
            with self.subTest(provider):
                request: Any = transcript.request(path, provider=provider)
                self.assertEqual(request["messages"][1]["content"][0]["name"], name)
                self.assertTrue(request["lint"]["ok"])
                self.assertEqual(request["provider"], provider or "messages")
        with transcript.Session.open(path, provider="converse") as session:
            sent: Any = session.request()
            self.assertEqual(sent["messages"][1]["content"][0]["name"], "mcp__a_b")
            self.assertEqual(sent["provider"], "converse")
        for options in ({"provider": "azure"}, {"provider": "vertex", "policy": "vendor"}):
            with self.subTest(options), self.assertRaisesRegex(transcript.InvalidError, "provider"):
                transcript.request(path, **options)  # type: ignore[arg-type]

    def test_sessions_are_listed_shown_as_a_tree_copied_and_moved(self) -> None:
        path = self.write(
            entry("user", "u1", None, "one", cwd="/work"),
            entry("assistant", "a1", "u1", "1", cwd="/work"),
            entry("user", "u2", "a1", "two", cwd="/work"),
        )
        (row,) = transcript.sessions(root=self.root, text="ONE")
        self.assertEqual((row["sessionId"], row["cwd"]), (ID, "/work"))
        self.assertEqual(transcript.sessions(root=self.root, since="2026-03-02"), [])
        tree = transcript.tree(path)
        self.assertEqual(tree["sessionId"], ID)
        copy = transcript.fork(path, at="1", root=self.root)
        self.assertNotEqual(copy["sessionId"], ID)
        self.assertEqual(len(transcript.sessions(root=self.root)), 2)
        moved = transcript.move("/work", "/new", root=self.root, dry_run=True)
        self.assertTrue(path.exists())
        transcript.move("/work", "/new", root=self.root)
        self.assertFalse(path.exists())
        self.assertEqual(len(transcript.sessions(root=self.root, project="/new")), 2, moved)

    def test_a_query_or_an_option_that_cannot_be_used_is_an_error(self) -> None:
        self.write(entry("user", "u1", None, "one"))
        with self.assertRaisesRegex(ValueError, "unclosed group"):
            list(transcript.search("/(/", root=self.root, cache=False))
        with self.assertRaisesRegex(transcript.InvalidError, "by: colour is none of day"):
            transcript.usage(by=["colour"], root=self.root, cache=False)
        with self.assertRaises(transcript.InvalidError):
            list(transcript.follow(self.project / f"{ID}.jsonl", start="no checkpoint"))

    def test_one_name_or_place_is_given_as_itself_and_several_as_a_list(self) -> None:
        path = self.write(entry("user", "u1", None, "one"), entry("assistant", "a1", "u1", "1"))
        for places in (path, str(path), [path], (str(path), self.project)):
            for role in ("user", ["user"], iter(["user", "tool"])):
                found = list(transcript.search("one", places, role=role, cache=False, root=self.root))
                self.assertEqual([record["kind"] for record in found], ["hit", "end"])
        redacted = transcript.redact("INTERNAL_ID=4711", also="INTERNAL_ID")
        self.assertNotIn("4711", redacted["text"])
        self.assertEqual(redacted, transcript.redact("INTERNAL_ID=4711", also=["INTERNAL_ID"]))
        events = transcript.watch(path, start="start", once=True, root=self.root)
        kinds = [event["kind"] for event in events]
        self.assertEqual(kinds.count("entry"), 2)

    @unittest.skipUnless(COMMAND, "skipped: $TRANSCRIPT_COMMAND does not name the command that makes an archive")
    def test_a_session_whose_file_is_gone_is_read_from_the_archive(self) -> None:
        path = self.write(entry("user", "u1", None, "one"), entry("assistant", "a1", "u1", "1"))
        archive = self.root.parent / "archive"
        keep = [str(COMMAND), "--root", str(self.root), "keep", "--archive", str(archive)]
        subprocess.run(keep, check=True, capture_output=True)
        path.unlink()
        place: Any = {"root": self.root, "archive": archive}
        self.assertEqual([row["sessionId"] for row in transcript.list_archived(archive)], [ID])
        self.assertEqual(len(list(transcript.entries(ID, **place))), 4)
        self.assertEqual(len(transcript.verify(ID, **place)), 1)
        hits = list(transcript.search("one", cache=False, **place))
        self.assertEqual([record["kind"] for record in hits], ["hit", "end"])
        with self.assertRaises(FileNotFoundError):
            list(transcript.entries(ID, root=self.root))


if __name__ == "__main__":
    unittest.main()
