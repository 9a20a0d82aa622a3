"""Sessions that are open for writing, and following them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import transcript_engine as transcript
from transcript_engine import AsyncSession, Session, StreamReply

HERE = Path(__file__).parent
KILLS = int(os.environ.get("TRANSCRIPT_KILLS", "20"))

APPENDER = """
import os, sys, json
from transcript_engine import Session
session = Session.open_or_create(sys.argv[1], cwd="/work", version="1")
while True:
    for written in session.append(user="x" * 200):
        os.write(1, (json.dumps(written) + "\\n").encode())
"""

# Buffers like many programs do: an entry that it acknowledged may still be in the memory of the process.
NAIVE = """
import os, sys, json, uuid
file = open(sys.argv[1], "a")
while True:
    id = str(uuid.uuid4())
    file.write(json.dumps({"type": "user", "uuid": id, "message": {"role": "user", "content": "x" * 200}}) + "\\n")
    os.write(1, (json.dumps([id, None, 0, 0]) + "\\n").encode())
"""


# The steps before the kill, and what must be found after them: the tests of Rust and Node read the same file.
WORK = HERE.parents[1] / "node/test/work.json"


def work(session: Session, steps: list[dict[str, Any]]) -> None:
    """Run steps in a session."""
    names = {
        "apiMs": "api_ms",
        "failedApiMs": "failed_api_ms",
        "toolMs": "tool_ms",
        "linesAdded": "lines_added",
        "linesRemoved": "lines_removed",
        "gitBranch": "git_branch",
    }
    for step in steps:
        name, given = next(iter(step.items()))
        options: dict[str, Any] = {}
        if not isinstance(given, str):
            options = {names[key] if key in names else key: value for key, value in given.items()}
        match name:
            case "append":
                session.append(**options)
            case "count":
                session.count(**options)
            case "context":
                session.set_context(**options)
            case "completeCalls":
                session.complete_calls(given)
            case "endTurn":
                session.end_turn(given)
            case _:
                raise AssertionError(name)


def found(counters: Any, state: Any) -> Any:
    """The parts of the answers that do not change between runs."""
    for key in ("durationMs", "startTime"):
        assert isinstance(counters.pop(key), int)
    for item in [*state["files"], *state["denials"]]:
        item.pop("uuid", None)
        item.pop("timestamp")
    kept = {key: state[key] for key in ("files", "denials", "gitBranch", "entrypoint")}
    return {"counters": counters, **kept}


class Folder(unittest.TestCase):
    """A folder with a path for a session."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl"

    def create(self) -> Session:
        return Session.create(self.path, cwd="/work", version="1.0.0")


class Paths(Folder):
    def test_a_relative_path_stays_that_of_the_folder_in_which_the_session_was_opened(self) -> None:
        self.addCleanup(os.chdir, os.getcwd())
        other = self.folder / "other"
        other.mkdir()
        os.chdir(self.folder)
        with Session.create(self.path.name, cwd="/work", version="1") as session:
            os.chdir(other)
            session.append(user="one")
            self.assertEqual(len(session.entries()), 1)
            self.assertTrue(os.path.isfile(session.fork()))
        self.assertEqual(list(other.iterdir()), [])
        self.assertTrue(self.path.is_file())

    def test_a_text_is_one_place(self) -> None:
        with self.create() as session:
            session.append(user="leap day")
        hits = list(transcript.search("leap", str(self.path), cache=False))
        self.assertEqual([hit["kind"] for hit in hits], ["hit", "end"])
        self.assertEqual(transcript.usage(self.path, by="model", cache=False)[-1]["kind"], "total")

    def test_a_file_that_is_no_transcript_is_refused_and_not_changed(self) -> None:
        text = "notes\nwithout a newline at the end"
        self.path.write_text(text)
        for use in (Session.open, Session.resume):
            with self.assertRaisesRegex(transcript.TranscriptError, "not a transcript"):
                use(self.path)
        self.assertEqual(self.path.read_text(), text)


class Readers(Folder):
    def test_a_read_that_timed_out_leaves_its_records_to_every_other_reader(self) -> None:
        session = self.create()
        self.addCleanup(session.close)
        session.append(user="one")
        records = transcript.follow(self.path)

        async def first() -> None:
            for _ in range(2):
                await records.__anext__()
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(records.__anext__(), 0.05)
            session.append(user="two")

        async def second() -> Any:
            return await records.__anext__()

        asyncio.run(first())
        found: list[Any] = [next(records)]
        session.append(user="three")
        # Another event loop than the one in which the read began.
        found.append(asyncio.run(second()))
        records.close()
        self.assertEqual([record["message"]["content"] for record in found], ["two", "three"])

    def test_threads_and_tasks_that_share_records_get_each_of_them_once(self) -> None:
        with self.create() as session:
            session.append_all([{"type": "user", "message": {"role": "user", "content": str(n)}} for n in range(3000)])
        interval = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, interval)
        sys.setswitchinterval(1e-5)
        records = transcript.entries(self.path)
        found: list[str | None] = []

        def read() -> None:
            found.extend(record.get("uuid") for record in records)

        async def read_in_task() -> None:
            async for record in records:
                found.append(record.get("uuid"))

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        asyncio.run(read_in_task())
        for thread in threads:
            thread.join()
        self.assertEqual(len(found), 3002)
        self.assertEqual(len({uuid for uuid in found if uuid is not None}), 3000)

    def test_a_number_of_many_digits_hides_no_entry(self) -> None:
        with self.create() as session:
            session.append('{"type":"user","n":' + "9" * 5000 + ',"message":{"role":"user","content":"one"}}')
            session.append(user="two")
            self.assertIn("two", json.dumps(session.request()))
        records = list(transcript.entries(self.path))
        self.assertEqual([record["kind"] for record in records], ["session", "entry", "entry", "end"])


def uuid_of(line: str) -> str | None:
    """Return the uuid of an entry; none of a torn line, to which another may be glued."""
    try:
        return json.loads(line)["uuid"]
    except ValueError:
        return None


class Sessions(Folder):
    def test_a_conversation_is_written_and_resumed(self) -> None:
        with self.create() as session:
            (prompt,) = session.append(user="How long is the year 2000?")
            self.assertIsNone(prompt.parent_uuid)
            call = {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [{"type": "tool_use", "id": "toolu_1", "name": "days", "input": {"year": 2000}}],
            }
            (answer,) = session.append(assistant=call)
            self.assertEqual(answer.parent_uuid, prompt.uuid)
            self.assertEqual(session.leaf, answer.uuid)
        with Session.resume(self.path, cwd="/work", version="1.0.0") as session:
            resumed = session.resumed
            assert resumed is not None
            # The process ended before the call had a result.
            self.assertGreater(len(resumed.added), 0)
            self.assertTrue(resumed.request["accepted"])
            roles = [message["role"] for message in resumed.request["messages"]]
            self.assertEqual(roles[:3], ["user", "assistant", "user"])
            session.set_title("Leap days")
            session.end_turn("How long is the year 2000?")
            copy = session.fork(title="Copy")
            session.rewind(prompt.uuid)
            self.assertEqual(session.leaf, prompt.uuid)
        request: Any = transcript.request(copy)
        self.assertEqual(request["messages"][0]["content"], "How long is the year 2000?")

    def test_actions_in_a_client_are_appended_as_clients_write_them(self) -> None:
        with self.create() as session:
            references = [{"kind": "file", "path": "a.py"}]
            session.append(client={"prompt": {"references": references, "text": "Why?"}})
            shell = session.append(client={"shell": {"command": "ls", "stdout": "a.py"}})
            self.assertEqual(len(shell), 3)
            session.append(client={"interrupt": {"toolUse": True}})
            previews = [entry["preview"] for entry in session.entries()]
            self.assertEqual(previews[0], "Why?")
            self.assertEqual(previews[2], "! ls")
            self.assertEqual(previews[-1], "[Request interrupted by user for tool use]")
            with self.assertRaises(transcript.InvalidError):
                session.append(client={"stop": {}})
            with self.assertRaises(TypeError):
                session.append(user="one", client={"interrupt": {}})

    def test_references_to_tools_that_are_not_named_are_not_sent(self) -> None:
        call: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "ToolSearch", "input": {}}
        references = [{"type": "tool_reference", "tool_name": name} for name in ("WebFetch", "Abacus")]
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": references}
        with self.create() as session:
            session.append(user="Find tools")
            session.append(assistant={"id": "m", "role": "assistant", "model": "m", "content": [call]})
            session.append({"type": "user", "message": {"role": "user", "content": [result]}})
        with Session.resume(self.path, tools=["Abacus"]) as session:
            assert session.resumed is not None
            sent = json.dumps(session.resumed.request["messages"])
            self.assertEqual(("WebFetch" in sent, "Abacus" in sent), (False, True))
        request: Any = transcript.request(self.path, tools=["WebFetch"])
        sent = json.dumps(request["messages"])
        self.assertEqual(("WebFetch" in sent, "Abacus" in sent), (True, False))

    def test_compaction_record_queue_and_tombstone(self) -> None:
        with self.create() as session:
            session.append(user="one")
            kept = session.append(user="two")[0].uuid
            assert kept is not None
            done = session.compact("They counted.", preserved=[kept])
            self.assertIsNone(done.boundary.parent_uuid)
            session.queue(user="three")
            last = session.append(user="four")[0].uuid
            assert last is not None
            message = {"type": "user", "uuid": last, "message": {"role": "user", "content": "four"}}
            self.assertEqual(session.record([message]), [])
            event = {"type": "stream_event"}
            withdrawn = {"type": "tombstone", "message": {"uuid": "gone"}}
            recorded = session.record([event, message, withdrawn, event])
            skipped = [transcript.Skipped("stream_event", "not-stored", 2, 0)]
            skipped.append(transcript.Skipped("tombstone", "unknown-entry", 1, 2))
            self.assertEqual((recorded, recorded.skipped), ([], skipped))
            session.tombstone(last)
            previews = [entry["preview"] for entry in session.entries() if entry["role"] is not None]
            self.assertEqual(previews[-2:], ["two", "three"])

    def test_results_of_calls_and_the_last_turns_that_a_compaction_keeps(self) -> None:
        calls: list[dict[str, Any]] = [{"type": "tool_use", "id": f"toolu_{n}", "name": "Calendar", "input": {}} for n in range(2)]
        with self.create() as session:
            self.assertEqual((session.entries(), session.story()), ([], []))
            first = session.append(user="one")[0].uuid
            assert first is not None
            session.append(user="two")
            session.append(assistant={"id": "m", "role": "assistant", "model": "m", "content": calls})
            session.append_tool_result("toolu_0", "366 days", tool_use_result={"days": 366})
            blocks = [{"type": "text", "text": "no such year"}]
            failed = session.append_tool_result("toolu_1", blocks, is_error=True)
            with self.assertRaises(transcript.InvalidError) as answered:
                session.append_tool_result("toolu_1", "again")
            self.assertEqual(answered.exception.kind, "answered-call")
            with self.assertRaises(ValueError):
                session.append_tool_result("toolu_1", [{"type": "text", "text": "half a pair \ud83d"}])
            lines = [json.loads(line) for line in self.path.read_text().splitlines()]
            self.assertEqual(lines[-2]["toolUseResult"], {"days": 366})
            result = {"tool_use_id": "toolu_1", "type": "tool_result", "content": blocks, "is_error": True}
            self.assertEqual((lines[-1]["uuid"], lines[-1]["message"]["content"]), (failed.uuid, [result]))
            with self.assertRaises(transcript.InvalidError):
                session.compact("They counted.", preserved=[first], keep_turns=1)
            session.compact("They counted.", keep_turns=1)
            story = session.story()
            self.assertEqual((story[0]["preview"], story[0]["inContext"]), ("one", False))
            self.assertEqual((story[1]["preview"], story[1]["inContext"]), ("two", True))
            self.assertEqual((session.find_entry(first[:8]), session.find_entry(1)), (first, first))
            with self.assertRaises(transcript.InvalidError):
                session.find_entry(1000)

    def test_an_entry_is_written_as_it_is(self) -> None:
        text = '{"type":"user","message":{"role":"user","content":"\\u00e9"},"n":9007199254740993,"e":1.0e400}'
        with self.create() as session:
            session.append(text)
            session.append(text.encode())
        lines = self.path.read_text().splitlines()
        self.assertEqual(len(lines), 2)
        for line in lines:
            self.assertIn('"content":"\\u00e9"},"n":9007199254740993,"e":1.0e400', line)

    def test_text_that_would_make_requests_fail_is_refused_and_nothing_is_written(self) -> None:
        with self.create() as session:
            session.append(user="hello")
            for text in ["half a pair \ud83d", "NUL \0"]:
                with self.assertRaises(ValueError):
                    session.append({"type": "user", "message": {"role": "user", "content": text}})
            session.append(user="again")
        self.assertEqual(len(list(transcript.entries(self.path))), 4)

    def test_arguments_that_are_mistakes_are_refused_and_nothing_is_written(self) -> None:
        message = '{"type":"user","message":{"role":"user","content":"one"}}'
        with self.create() as session:
            session.append(user="hello")
            session.set_title("leap days")
            before = self.path.read_bytes()
            mistakes: list[Callable[[Any], Any]] = [
                lambda wrong: session.append(user="one", assistant=wrong),
                lambda wrong: session.append(message + "," + message),
                lambda wrong: session.append(message + ',"parent":null'),
                lambda wrong: session.append_all([message + "," + message]),
                lambda wrong: session.append_all(wrong),
                lambda wrong: session.append_all(message),
                lambda wrong: session.record([message + "," + message]),
                lambda wrong: session.append({**wrong, "n": float("nan")}),
                lambda wrong: session.append(message.encode("utf-16")),
                lambda wrong: session.append(message.replace("one", "half a pair \ud83d")),
                lambda wrong: session.append(assistant={"role": "user", "content": "one"}),
                lambda wrong: session.set_title(wrong),
                lambda wrong: session.set_tag(wrong),
                lambda wrong: session.end_turn(wrong),
                lambda wrong: session.rewind(wrong),
                lambda wrong: session.fork(at=wrong),
                lambda wrong: session.compact("summary", pre_tokens=wrong),
            ]
            for number, mistake in enumerate(mistakes):
                with self.subTest(number), self.assertRaises((ValueError, TypeError)):
                    mistake({"type": "user"})
                self.assertEqual(self.path.read_bytes(), before)
            # Bytes of any kind are the JSON of an entry.
            for bytes_of in (bytes, bytearray, memoryview):
                session.append(bytes_of(message.encode()))
            session.set_tag("time")
            session.set_tag(None)
        self.assertTrue(self.path.read_text().rstrip().endswith('"tag":"","sessionId":"' + self.path.stem + '"}'))

    def test_a_line_of_64_mib_is_written_and_read(self) -> None:
        text = "x" * ((64 << 20) - 4096)
        with self.create() as session:
            session.append(user=text)
        records: list[Any] = list(transcript.entries(self.path))
        _, entry, _ = records
        self.assertEqual(len(entry["message"]["content"]), len(text))
        with self.create_other() as session, self.assertRaises(transcript.InvalidError):
            session.append(user=text + "x" * 8192)

    def create_other(self) -> Session:
        return Session.create(self.folder / "2999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl", cwd="/", version="1")

    def test_a_torn_line_is_saved_when_the_session_is_opened(self) -> None:
        with self.create() as session:
            session.append(user="hello")
        torn = '{"type":"user","uuid":"x'
        with self.path.open("a") as file:
            file.write(torn)
        with Session.open(self.path, cwd="/work", version="1") as session:
            repair = session.repair
            assert repair is not None
            self.assertEqual((repair["kind"], repair["len"]), ("cut", len(torn)))
            self.assertEqual(Path(repair["saved"]).read_text(), torn)

    def test_errors_have_kind_and_path(self) -> None:
        with self.assertRaises(FileNotFoundError):
            Session.open(self.path)
        with self.create() as session:
            with self.assertRaises(transcript.InvalidError) as caught:
                session.append("not json")
            self.assertEqual(caught.exception.path, str(self.path))
            session.append(user="hello")
            with self.assertRaises(transcript.TranscriptError) as caught:
                Session.open(self.path)
            self.assertEqual(caught.exception.kind, "busy")
            with self.assertRaises(FileExistsError):
                self.create()
        with self.assertRaises(transcript.ClosedError):
            session.append(user="again")
        session.close()

    def test_a_streamed_reply_is_kept_as_far_as_it_arrived(self) -> None:
        reply = StreamReply()
        start: dict[str, Any] = {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "model": "m", "content": []}}
        reply.event(start)
        reply.event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
        step = reply.event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}})
        self.assertEqual(step, ("delta", 0))
        self.assertEqual(reply.result()["state"], "partial")
        with self.create() as session:
            session.append(user="Say hello")
            session.append_reply(reply)
        self.assertIn("Hel", self.path.read_text())

    def test_threads_share_a_session(self) -> None:
        with self.create() as session:

            def work() -> None:
                for _ in range(100):
                    session.append(user="hello")

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(len(list(transcript.entries(self.path))), 402)

    @unittest.skipUnless(hasattr(os, "fork"), "skipped: no fork here")
    def test_a_forked_child_must_open_again(self) -> None:
        session = self.create()
        session.append(user="hello")
        events = transcript.follow(self.path)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                kinds: list[str] = []
                for use in (lambda: session.append(user="child"), lambda: next(events)):
                    try:
                        use()
                    except transcript.ForkedError as error:
                        kinds.append(error.kind)
                read = [record["kind"] for record in transcript.entries(self.path)]
                del session, events
                # It has threads of its own, also for those that all sessions and follows share.
                signal.alarm(60)
                own = transcript.follow(self.path)
                while next(own)["kind"] != "entry":
                    pass
                path = self.folder / "2999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl"
                with transcript.follow(path, start="end") as later:
                    other = Session.create(path, cwd="/", version="1", sync=1)
                    other.queue(user="queued")
                    while next(later)["kind"] != "entry":
                        pass
                    other.close()
                code = 0 if kinds == ["forked", "forked"] and read == ["session", "entry", "end"] else 2
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        session.append(user="parent")
        session.close()
        self.assertEqual(len(list(transcript.entries(self.path))), 4)
        events.close()

    def acknowledged_after_kills(self, program: str, kills: int) -> tuple[int, int]:
        """Kill a program that appends; return how many entries it acknowledged, and how many of them are lost."""
        acknowledged: set[str] = set()
        for kill in range(kills):
            child = subprocess.Popen([sys.executable, "-c", program, str(self.path)], stdout=subprocess.PIPE)
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(0.001 * (kill % 17))
            child.send_signal(signal.SIGKILL)
            rest, _ = child.communicate()
            for line in rest.splitlines(keepends=True):
                if line.endswith(b"\n"):
                    acknowledged.add(json.loads(line)[0])
        found = {uuid_of(line) for line in self.path.read_text().splitlines()}
        return len(acknowledged), len(acknowledged - found)

    def test_nothing_acknowledged_is_lost_by_a_kill(self) -> None:
        acknowledged, lost = self.acknowledged_after_kills(APPENDER, KILLS)
        self.assertGreater(acknowledged, 10 * KILLS)
        self.assertEqual(lost, 0)
        (report,) = transcript.verify(self.path)
        self.assertNotEqual(report["verdict"], "lossy")

    def test_counters_and_files_survive_a_kill_and_a_resume(self) -> None:
        worker = subprocess.Popen(
            [sys.executable, __file__, str(self.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert worker.stdout is not None and worker.stdin is not None
        self.assertEqual(worker.stdout.readline(), "ready\n")
        worker.send_signal(signal.SIGKILL)
        worker.communicate()
        steps = json.loads(WORK.read_text())
        with Session.resume(self.path, cwd="/work", version="1.0.0") as session:
            self.assertEqual(session.counters()["linesAdded"], 1)
            work(session, steps["after"])
            counters, state = session.counters(), session.state()
            self.assertEqual(found(counters, state), steps["expected"])
            fork = session.fork()
        report: Any = transcript.request(self.path, full=True)
        self.assertEqual(found(report["state"]["costs"], report["state"]), steps["expected"])
        with Session.open(fork) as session:
            self.assertEqual(session.counters()["totalCostUSD"], counters["totalCostUSD"])
        command = os.environ.get("TRANSCRIPT_COMMAND")
        if command is not None:
            done = subprocess.run([command, "resume", "--whole-file", "--json", str(self.path)], capture_output=True, text=True)
            told = json.loads(done.stdout)["state"]
            self.assertEqual(found(told["costs"], told), steps["expected"], "the answer of the command")

    def test_a_resume_says_what_changed_in_the_system_prompt(self) -> None:
        prompt = {"base": "Be short.", "git": "branch: main"}
        with self.create() as session:
            self.assertIsNone(session.prompt_changes(prompt))
            session.append(user="go")
            written = session.record_prompt(prompt)
            assert written is not None
            self.assertIsNone(written.uuid)
            self.assertIsNone(session.record_prompt(prompt))
            fork = session.fork()
        new = {"base": "Be short.", "git": "branch: fix", "tools": "None."}
        for path in (self.path, fork):
            with self.subTest(path), Session.resume(path) as session:
                changes = transcript.PromptChanges(["tools"], [], ["git"], False)
                self.assertEqual(session.prompt_changes(new), changes)
                joined = session.prompt_changes(prompt, separator=" ")
                self.assertEqual(joined, transcript.PromptChanges([], [], [], True))
                before = Path(path).read_text()
                with self.assertRaises(transcript.TranscriptError):
                    session.record_prompt({})
                self.assertEqual(Path(path).read_text(), before)

        async def run() -> None:
            async with await transcript.AsyncSession.open(self.path) as session:
                self.assertIsNotNone(await session.record_prompt(new))
                changes = await session.prompt_changes(new)
                assert changes is not None
                self.assertEqual(changes, ([], [], [], False))

        asyncio.run(run())

    def test_counts_and_settings_are_checked(self) -> None:
        with self.create() as session:
            self.assertEqual(session.state()["files"], None)
            self.assertEqual(session.complete_calls("Stopped"), [])
            session.append(user="go")
            before = self.path.read_text()
            mistakes: list[dict[str, Any]] = [
                {"reply": {}},
                {"reply": {"model": "m"}},
                {"api_ms": -1},
                {"lines_added": 1.5},
            ]
            for wrong in mistakes:
                with self.assertRaises(transcript.TranscriptError):
                    session.count(**wrong)
            self.assertEqual(session.counters()["models"], [])
            self.assertEqual(self.path.read_text(), before)

    def test_tasks_append_results_of_calls_and_read_the_story(self) -> None:
        async def work() -> None:
            options: transcript.SessionOptions = {"cwd": "/work", "version": "1.0.0"}
            async with await AsyncSession.create(self.path, **options) as session:
                first = (await session.append(user="one"))[0].uuid
                call: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "Calendar", "input": {}}
                await session.append(assistant={"id": "m", "role": "assistant", "model": "m", "content": [call]})
                result = await session.append_tool_result("toolu_1", "366 days")
                self.assertEqual(await session.leaf(), result.uuid)
                await session.compact("They counted.", keep_turns=1)
                self.assertEqual({entry["inContext"] for entry in await session.story()}, {True})
                self.assertEqual(await session.find_entry(1), first)

        asyncio.run(work())

    def test_tasks_count_and_complete_calls_as_well(self) -> None:
        async def run() -> Any:
            async with await AsyncSession.create(self.path, cwd="/", version="1", git_branch="main") as session:
                await session.append(user="go")
                call: Any = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
                message: dict[str, Any] = {"id": "m", "role": "assistant", "model": "m", "content": [call], "usage": {"output_tokens": 2}}
                await session.append(assistant=message)
                await session.count(reply=message, api_ms=1.5)
                await session.set_context(git_branch="fix")
                self.assertEqual(len(await session.complete_calls("Stopped")), 1)
                await session.end_turn()
                return await session.counters(), await session.state()

        counters, state = asyncio.run(run())
        self.assertEqual(counters["models"][0]["outputTokens"], 2)
        self.assertEqual(state["costs"], counters)
        self.assertEqual(state["gitBranch"], "fix")

    def test_the_naive_writer_loses_entries_in_the_same_test(self) -> None:
        _, lost = self.acknowledged_after_kills(NAIVE, 5)
        self.assertGreater(lost, 0)


class Following(Folder):
    def test_a_thread_gets_entries_as_they_are_written(self) -> None:
        with self.create() as session:
            session.append(user="one")
            with transcript.follow(self.path) as events:
                self.assertEqual(next(events)["kind"], "open")
                one: Any = next(events)
                self.assertEqual(one["message"]["content"], "one")
                session.append(user="two")
                last: Any = next(events)
                self.assertEqual(last["message"]["content"], "two")
            session.append(user="three")
        again = transcript.follow(self.path, start=last["checkpoint"], once=True)
        contents = [record["message"]["content"] for record in again if record["kind"] == "entry"]
        self.assertEqual(contents, ["three"])

    def test_a_task_gets_them_and_can_be_cancelled(self) -> None:
        async def run() -> list[Any]:
            async with await AsyncSession.create(self.path, cwd="/", version="1") as session:
                found: list[Any] = []
                events = transcript.follow(self.path)

                async def read() -> None:
                    async for record in events:
                        if record["kind"] == "entry":
                            found.append(record["message"]["content"])

                reader = asyncio.create_task(read())
                await asyncio.gather(*(session.append(user=str(number)) for number in range(50)))
                while len(found) < 50:
                    await asyncio.sleep(0.01)
                reader.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await reader
                events.close()
                self.assertEqual(len((await session.request())["messages"][0]["content"]), 50)
                return found

        self.assertEqual(asyncio.run(run()), [str(number) for number in range(50)])

    def test_other_tasks_run_while_one_appends_in_a_loop(self) -> None:
        async def run() -> int:
            turns = 0

            async def count() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            counter = asyncio.create_task(count())
            async with await AsyncSession.create(self.path, cwd="/", version="1") as session:
                for _ in range(1000):
                    await session.append(user="x")
            counter.cancel()
            return turns

        self.assertGreaterEqual(asyncio.run(run()), 20)

    def test_a_timeout_loses_no_record(self) -> None:
        async def run() -> list[str]:
            found: list[str] = []
            async with await AsyncSession.create(self.path, cwd="/", version="1") as session:
                await session.append(user="0")
                async with transcript.follow(self.path) as events:
                    number = 1
                    while len(found) < 20:
                        try:
                            record = await asyncio.wait_for(events.__anext__(), 0.002)
                        except asyncio.TimeoutError:
                            # The answers to these writes have no reader any more.
                            await session.append(user=str(number))
                            await asyncio.sleep(0.002)
                            number += 1
                            continue
                        if record["kind"] == "entry":
                            found.append(record["message"]["content"])
            return found

        self.assertEqual(asyncio.run(run()), [str(number) for number in range(20)])

    def test_the_event_loop_goes_on_while_a_large_session_is_read(self) -> None:
        with self.create() as session:
            session.append_all({"type": "user", "message": {"role": "user", "content": "x" * 5000}} for _ in range(4000))

        async def run() -> int:
            ticks = 0

            async def tick() -> None:
                nonlocal ticks
                while True:
                    await asyncio.sleep(0)
                    ticks += 1

            ticker = asyncio.create_task(tick())
            count = 0
            async for _ in transcript.entries(self.path):
                count += 1
            ticker.cancel()
            self.assertEqual(count, 4002)
            return ticks

        self.assertGreater(asyncio.run(run()), 10)

    def test_watching_returns_what_is_written_after_it_has_started(self) -> None:
        project = self.folder / "projects" / "-work"
        project.mkdir(parents=True)
        path = project / self.path.name
        with Session.create(path, cwd="/work", version="1") as session:
            session.append(user="old")
        for number in range(20):
            with transcript.watch(self.folder / "projects") as events:
                with Session.open(path, cwd="/work", version="1") as session:
                    session.append(user=str(number))
                record = next(record for record in events if record["kind"] == "entry")
            self.assertEqual(record["message"]["content"], str(number))

    def test_watching_finds_new_sessions(self) -> None:
        project = self.folder / "projects" / "-work"
        project.mkdir(parents=True)
        with transcript.watch(self.folder / "projects") as events:
            session = Session.create(project / self.path.name, cwd="/work", version="1")
            session.append(user="hello")
            record: Any = next(record for record in events if record["kind"] == "entry")
            session.close()
        self.assertTrue(record["path"].endswith(self.path.name))


class Refusals(unittest.TestCase):
    def test_entry_that_no_reader_would_find_is_refused_with_the_reason(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl"
            session = transcript.Session.create(path, cwd="/", version="1")
            session.append(user="x")
            call: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "days", "input": {}}
            # A call that the provider runs, and whose result did not arrive, is not sent.
            search: dict[str, Any] = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
            searched, asked = session.append(assistant={"id": "m", "role": "assistant", "model": "m", "content": [search, call]})
            request = session.request()
            self.assertEqual([(s["kind"], s["uuid"]) for s in request["synthetic"]], [("pending-result", asked.uuid)])
            self.assertEqual([(o["reason"], o["uuid"]) for o in request["omitted"]], [("api-tool-pair", searched.uuid)])

            def result(call: str) -> None:
                block = {"type": "tool_result", "tool_use_id": call, "content": "366 days"}
                session.append({"type": "user", "message": {"role": "user", "content": [block]}})

            def refused(kind: str, append: Callable[[], Any]) -> None:
                with self.assertRaises(transcript.InvalidError) as caught:
                    append()
                self.assertEqual(caught.exception.kind, kind)

            refused("unknown-call", lambda: result("toolu_WRONG"))
            result("toolu_1")
            refused("answered-call", lambda: result("toolu_1"))
            entries: list[dict[str, Any]] = [
                {"type": "user"},
                {"type": "usr", "message": {}},
                {"type": "user", "message": {"content": 3}},
            ]
            for entry in entries:
                refused("invalid-entry", lambda entry=entry: session.append(entry))  # type: ignore[misc]
            self.assertEqual(len(Path(path).read_text().splitlines()), 4)
            self.assertEqual(session.request()["synthetic"], [])
            session.close()


SUB_INTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
number = interpreters.create()
failed = interpreters.run_string(number, "import transcript_engine")
if failed is not None:
    raise RuntimeError(str(failed))
"""


class Interpreters(unittest.TestCase):
    def test_a_sub_interpreter_is_refused_with_a_sentence(self) -> None:
        done = subprocess.run([sys.executable, "-c", SUB_INTERPRETER], capture_output=True, text=True, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("transcript cannot be used in a sub-interpreter", done.stderr)


async def use_a_session(path: str) -> None:
    """Opens a session, uses it from several tasks, and follows it."""
    import anyio

    async with await AsyncSession.create(path, cwd="/", version="1") as session:
        await session.append(user="first")
        async with transcript.follow(path, start="start") as events:

            async def say(number: int) -> None:
                await session.append(user=f"number {number}")

            async with anyio.create_task_group() as tasks:
                for number in range(20):
                    tasks.start_soon(say, number)
            found: list[str] = []
            async for event in events:
                if event["kind"] == "entry":
                    found.append(event["uuid"] or "")
                if len(found) == 21:
                    break
        assert len(set(found)) == 21
        # A task that is cancelled while it waits takes no record with it.
        async with transcript.follow(path, start="end") as events:
            with anyio.move_on_after(0.05) as scope:
                while True:
                    await events.__anext__()
            assert scope.cancelled_caught
            (written,) = await session.append(user="later")
            with anyio.fail_after(20):
                while (event := await events.__anext__())["kind"] != "entry":
                    pass
            assert event["uuid"] == written.uuid
        request = await session.request()
        assert len(request["messages"]) == 1
    try:
        await session.append(user="closed")
    except transcript.ClosedError:
        return
    raise AssertionError("a closed session took an entry")


class Loops(unittest.TestCase):
    def test_a_session_and_a_follower_work_under_asyncio_and_trio(self) -> None:
        try:
            import anyio
            import trio  # noqa: F401  # pyright: ignore
        except ImportError:
            self.skipTest("no anyio or trio")
        for backend in ("asyncio", "trio"):
            with self.subTest(backend=backend), tempfile.TemporaryDirectory() as folder:
                path = f"{folder}/1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl"
                anyio.run(use_a_session, path, backend=backend)


MANY_FOLLOWS = """
import asyncio, os, sys, transcript_engine as transcript

FOLLOWS, SESSIONS = 1000, 400


def path(number):
    return f"{sys.argv[1]}/{number:08x}-ee08-4b08-99d5-2d9a36fd8293.jsonl"


def used():
    links = []
    for name in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            pass
    return len(os.listdir("/proc/self/task")), sum("inotify" in link for link in links)


async def few(when, threads=8):
    # A slow disk may keep more of them for a moment, and those without work end after one.
    for _ in range(1200):
        if used()[0] <= threads:
            break
        await asyncio.sleep(0.05)
    print(when, *used(), flush=True)


async def texts(events, count):
    found = []
    while len(found) < count:
        event = await asyncio.wait_for(events.__anext__(), 60)
        if event["kind"] == "entry":
            found.append(event["message"]["content"])
    return found


async def main():
    opening = (transcript.AsyncSession.create(path(number), cwd="/", version="1") for number in range(SESSIONS))
    sessions = await asyncio.gather(*opening)
    await asyncio.gather(*(session.append(user="0") for session in sessions))
    for number in range(SESSIONS, FOLLOWS):
        with transcript.Session.create(path(number), cwd="/", version="1", sync="none") as session:
            session.append(user="0")
    follows = []
    for number in range(FOLLOWS):
        follows.append(transcript.follow(path(number)))
        if number % 5 == 0:
            await sessions[number * 7 % SESSIONS].append(user="x")
    for number, events in enumerate(follows):
        assert await texts(events, 1) == ["0"], number
    await few("opened")
    extra = [0] * FOLLOWS
    for number in range(0, FOLLOWS, 5):
        extra[number * 7 % SESSIONS] += 1
    for number, events in enumerate(follows):
        assert await texts(events, extra[number]) == ["x"] * extra[number], number
    await asyncio.gather(*(session.append(user="1") for session in sessions))
    for number in range(SESSIONS):
        assert await texts(follows[number], 1) == ["1"], number
    await few("written")
    for events in follows:
        events.close()
    await asyncio.gather(*(session.close() for session in sessions))
    await few("closed", 1)


asyncio.run(main())
"""


@unittest.skipUnless(os.path.exists("/proc/self/task"), "skipped: no /proc here")
class Many(unittest.TestCase):
    def test_a_thousand_follows_and_four_hundred_sessions_take_eight_threads(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            command = ["sh", "-c", 'ulimit -n 4000; exec "$@"', "sh", sys.executable, "-c", MANY_FOLLOWS, folder]
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = {when: (int(threads), int(instances)) for when, threads, instances in map(str.split, done.stdout.splitlines())}
        for when in ("opened", "written"):
            self.assertLessEqual(said[when][0], 8, said)
            self.assertEqual(said[when][1], 1, said)
        self.assertEqual(said["closed"], (1, 0))


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].endswith(".jsonl"):
        # The process that is killed.
        work(Session.create(sys.argv[1], cwd="/work", version="1.0.0"), json.loads(WORK.read_text())["before"])
        print("ready", flush=True)
        sys.stdin.read()
    else:
        unittest.main()
