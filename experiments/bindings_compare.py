#!/usr/bin/env python3
"""Prints the table of docs/bindings.md: the packages and the official SDKs, measured in one run.

Usage: bindings_compare.py --python PYTHON --node FOLDER --large FILE --store FOLDER [--rounds N] [--without-sdks]

PYTHON has the packages `transcript-engine` and `claude-agent-sdk`; FOLDER is an npm project with `transcript-engine` and
`@anthropic-ai/claude-agent-sdk`. FILE is a session of about 1 GB, the store a folder with `projects` of 2,000 sessions
(/shared/bench/gen.py makes both). Each value is the median of the rounds, each in a process of its own; memory is the
largest resident size of that process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PYTHON = {
    "import": "import time; t = time.perf_counter(); import transcript_engine; print(time.perf_counter() - t)",
    "messages, as an iterator": """
import sys, time, transcript_engine as transcript
t = time.perf_counter(); first = None; n = 0
for m in transcript.iter_session_messages(sys.argv[2], root=sys.argv[1]):
    first = first or time.perf_counter() - t; n += 1
print(time.perf_counter() - t, first, n)""",
    "messages, each parsed": """
import sys, time, transcript_engine as transcript
t = time.perf_counter(); n = 0
for m in transcript.iter_session_messages(sys.argv[2], root=sys.argv[1]):
    m.message; n += 1
print(time.perf_counter() - t, None, n)""",
    "messages, as a list": """
import os, sys, time
os.environ["CLAUDE_CONFIG_DIR"] = sys.argv[1].removesuffix("/projects")
from MODULE import get_session_messages
t = time.perf_counter()
n = sum(1 for m in get_session_messages(sys.argv[2]) if m.message is not None)
print(time.perf_counter() - t, None, n)""",
    "list": """
import os, sys, time
os.environ["CLAUDE_CONFIG_DIR"] = sys.argv[3]
from MODULE import list_sessions
t = time.perf_counter(); n = len(list_sessions()); print(time.perf_counter() - t, None, n)""",
    "append": """
import sys, time, transcript_engine as transcript
with transcript.Session.create(sys.argv[4], cwd="/", version="1") as s:
    e = {"type": "user", "message": {"role": "user", "content": "x" * 2050}}
    t = time.perf_counter()
    for _ in range(20000): s.append(e)
    print((time.perf_counter() - t) / 20000)""",
    "append, awaited": """
import asyncio, sys, time, transcript_engine as transcript
async def main():
    async with await transcript.AsyncSession.create(sys.argv[4], cwd="/", version="1") as s:
        e = {"type": "user", "message": {"role": "user", "content": "x" * 2050}}
        t = time.perf_counter()
        for _ in range(20000): await s.append(e)
        print((time.perf_counter() - t) / 20000)
asyncio.run(main())""",
    "follow": """
import sys, threading, time, transcript_engine as transcript
s = transcript.Session.create(sys.argv[4], cwd="/", version="1"); s.append(user="x")
events = transcript.follow(s.path); next(events); next(events)
seen = threading.Event(); took = []
def read():
    for _ in events: took.append(time.perf_counter() - sent); seen.set()
threading.Thread(target=read, daemon=True).start()
for _ in range(1000):
    seen.clear(); sent = time.perf_counter(); s.append(user="x"); seen.wait(); time.sleep(0.001)
took.sort(); print(took[500], took[990])
events.close(); s.close()""",
}

NODE_HEAD = "const [root, id, config, path] = process.argv.slice(2); const now = () => performance.now() / 1000;\n"
NODE = {
    "import": "const t = now(); await import('transcript-engine'); console.log(now() - t);",
    "messages, as an iterator": """
import { iterSessionMessages } from 'transcript-engine';
const t = now(); let n = 0, first;
for await (const m of iterSessionMessages(id, { root })) { first ??= now() - t; n += 1; }
console.log(now() - t, first, n);""",
    "messages, each parsed": """
import { iterSessionMessages } from 'transcript-engine';
const t = now(); let n = 0;
for await (const m of iterSessionMessages(id, { root })) { m.message; n += 1; }
console.log(now() - t, null, n);""",
    "messages, as a list": """
process.env.CLAUDE_CONFIG_DIR = root.replace(/.projects$/, '');
const { getSessionMessages } = await import('MODULE');
const t = now(); const { length } = await getSessionMessages(id); console.log(now() - t, null, length);""",
    "list": """
process.env.CLAUDE_CONFIG_DIR = config;
const { listSessions } = await import('MODULE');
const t = now(); const { length } = await listSessions(); console.log(now() - t, null, length);""",
    "append, awaited": """
import { Session } from 'transcript-engine';
const s = await Session.create(path, { cwd: '/', version: '1' });
const e = { type: 'user', message: { role: 'user', content: 'x'.repeat(2050) } };
const t = now();
for (let i = 0; i < 20000; i += 1) await s.append(e);
console.log((now() - t) / 20000);
await s.close();""",
    "follow": """
import { Session, follow } from 'transcript-engine';
const s = await Session.create(path, { cwd: '/', version: '1' }); await s.append({ user: 'x' });
const events = follow(path); await events.next(); await events.next();
const took = [];
for (let i = 0; i < 1000; i += 1) {
  const next = events.next(); const t = now(); s.append({ user: 'x' });
  await next; took.push(now() - t);
  await new Promise((done) => setTimeout(done, 1));
}
took.sort((a, b) => a - b); console.log(took[500], took[990]);
events.close(); await s.close();""",
}

SDKS = {"python": "claude_agent_sdk", "node": "@anthropic-ai/claude-agent-sdk"}


def run(command: list[str], folder: Path) -> tuple[list[float | None], int]:
    """Returns the numbers that a program prints, and its peak memory in MiB."""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE)
    assert process.stdout is not None
    text = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command[0]} ended with {process.returncode}")
    numbers = text.replace("None", "null").replace("undefined", "null").split()
    return [json.loads(number) for number in numbers], usage.ru_maxrss >> 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True)
    parser.add_argument("--node", type=Path, required=True)
    parser.add_argument("--large", type=Path, required=True)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-sdks", action="store_true")
    arguments = parser.parse_args()
    print("| what | package | median | first or p99 | memory | count |\n| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        root = folder / "projects"
        (root / "-large").mkdir(parents=True)
        os.symlink(arguments.large.resolve(), root / "-large" / arguments.large.name)
        values = [str(root), arguments.large.stem, str(arguments.store)]

        def row(what: str, package: str, command: list[str], rounds: int) -> None:
            found: list[tuple[list[float | None], int]] = []
            for number in range(rounds):
                path = folder / f"{number:08x}-0000-4000-8000-000000000000.jsonl"
                found.append(run([*command, *values, str(path)], arguments.node))
                path.unlink(missing_ok=True)
            middle = sorted(found, key=lambda one: one[0][0] or 0)[len(found) // 2]
            numbers = [*middle[0], None, None][:3]
            shown: list[Any] = [number if number is None else f"{number * 1000:.3g} ms" for number in numbers[:2]]
            memory = statistics.median(one[1] for one in found)
            print(f"| {what} | {package} | {shown[0]} | {shown[1] or ''} | {memory:.0f} MiB | {numbers[2] or ''} |", flush=True)

        for what in [*PYTHON, *(name for name in NODE if name not in PYTHON)]:
            for language, texts in [("python", PYTHON), ("node", NODE)]:
                if what not in texts:
                    continue
                ours = {"python": "transcript_engine", "node": "transcript-engine"}[language]
                modules = [ours]
                if "MODULE" in texts[what] and not arguments.without_sdks:
                    modules.append(SDKS[language])
                for module in modules:
                    text = texts[what].replace("MODULE", module)
                    if language == "python":
                        command = [arguments.python, "-c", text]
                    else:
                        script = arguments.node / "compare.mjs"
                        script.write_text(NODE_HEAD + text)
                        command = ["node", str(script)]
                    is_slow = module != ours and what.startswith("messages")
                    row(what, f"{module} ({language})", command, 1 if is_slow else arguments.rounds)


if __name__ == "__main__":
    main()
