"""The example agents of both languages: a streamed reply, a call, a crash, a resume, and a follower beside them."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import urllib.request
from collections.abc import Generator
from pathlib import Path
from typing import Any

import transcript_engine as transcript

BINDINGS = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(BINDINGS))
from scripted_model import ScriptedModel, streamed  # noqa: E402

PROMPT = "How long is the year 2000?"


def agents() -> dict[str, list[str]]:
    """The commands of the agents; that for Node where a test says how to run it."""
    found = {"python": [sys.executable, str(BINDINGS / "python/examples/agent.py")]}
    node = os.environ.get("TRANSCRIPT_NODE_AGENT")
    if node is not None:
        found["node"] = ["node", node]
    return found


class Agents(unittest.TestCase):
    def test_an_agent_that_is_killed_at_any_request_is_resumed(self) -> None:
        for name, command in agents().items():
            for kill_at in (None, 1, 2):
                with self.subTest(agent=name, killed_at=kill_at):
                    self.run_agent(command, kill_at)

    def run_agent(self, command: list[str], kill_at: int | None) -> None:
        reached, release = threading.Event(), threading.Event()

        def pause(number: int) -> None:
            if number == kill_at:
                reached.set()
                release.wait(20)

        model = ScriptedModel(pause)
        self.addCleanup(model.close)
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl"
            seen: list[str] = []
            events = transcript.follow(path)
            follower = threading.Thread(target=lambda: seen.extend(r["uuid"] for r in events if r["kind"] == "entry" and r["uuid"]))
            follower.start()
            try:
                if kill_at is not None:
                    agent = subprocess.Popen([*command, path, model.url, PROMPT])
                    self.assertTrue(reached.wait(20))
                    agent.send_signal(signal.SIGKILL)
                    agent.wait()
                    release.set()
                    arguments = [path, model.url]
                else:
                    arguments = [path, model.url, PROMPT]
                done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("The year has 366 days.", done.stdout)
                # Both replies are counted, also that of a turn which was killed.
                request: Any = transcript.request(path)
                costs = request["state"]["costs"]
                (counted,) = costs["models"]
                self.assertEqual((counted["inputTokens"], counted["outputTokens"]), (20, 14))
                self.assertTrue(costs["hasUnknownModelCost"])
                (report,) = transcript.verify(path)
                self.assertNotIn(report["verdict"], ("damaged", "lossy"))
                written = [r["uuid"] for r in transcript.entries(path) if r["kind"] == "entry"]
                while not set(written) <= set(seen) and follower.is_alive():
                    follower.join(0.01)
                # Each entry once, in order.
                self.assertEqual([uuid for uuid in seen if uuid in set(written)], written)
            finally:
                release.set()
                events.close()
                follower.join()
        # The last request has the prompt and the result of the call.
        self.assertEqual(model.requests[-1][0]["content"], PROMPT)


class CutStream(unittest.TestCase):
    def test_no_tool_runs_with_a_part_of_its_input_wherever_a_stream_ends(self) -> None:
        place = importlib.util.spec_from_file_location("agent", BINDINGS / "python/examples/agent.py")
        assert place is not None and place.loader is not None
        agent = importlib.util.module_from_spec(place)
        place.loader.exec_module(agent)
        inputs: list[Any] = []
        run_tool = agent.run_tool

        def recorded(name: str, given: Any) -> str:
            inputs.append(given)
            return str(run_tool(name, given))

        setattr(agent, "run_tool", recorded)
        sent: list[list[Any]] = []
        rest: list[int] = []

        @contextlib.contextmanager
        def urlopen(query: urllib.request.Request) -> Generator[Any]:
            messages = json.loads(bytes(query.data or b""))["messages"]  # type: ignore[arg-type]
            sent.append(messages)
            data = streamed(messages)
            yield Received(data[: rest.pop() if rest else len(data)])

        length = len(streamed([{"role": "user", "content": PROMPT}]))
        ran = noted = 0
        with unittest.mock.patch("urllib.request.urlopen", urlopen), contextlib.redirect_stdout(io.StringIO()):
            for cut in range(length + 1):
                with self.subTest(cut=cut), tempfile.TemporaryDirectory() as folder:
                    path = f"{folder}/1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl"
                    inputs.clear()
                    sent.clear()
                    rest.append(cut)
                    try:
                        agent.main(path, "http://model", PROMPT)
                    except SystemExit:
                        self.assertEqual(inputs, [])
                        agent.main(path, "http://model", None)
                        noted += "[Tool call not run: " in json.dumps(sent[1])
                    self.assertEqual(inputs, [{"year": 2000}])
                    ran += 1
        self.assertEqual(ran, length + 1)
        self.assertGreater(noted, 50, "cuts within the input")


class Received:
    """A response whose connection ends after these bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def read1(self, size: int) -> bytes:
        return self._data.read(size)


if __name__ == "__main__":
    unittest.main()
