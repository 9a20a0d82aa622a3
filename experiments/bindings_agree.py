#!/usr/bin/env python3
"""Compares the answers of the command, the Python package and the npm package for the same sessions.

Usage: bindings_agree.py --command PATH --node FOLDER [--generate N] [--damage N] [PATH ...]

Runs in a Python that has the package `transcript-engine`; FOLDER is an npm project that has the package of that name. PATH are
sessions, or folders of them. Also compares N generated sessions, and N damaged copies of sessions.

For each session the messages (`replay`), the request (`resume`), the usage, a search and the findings (`verify`) are
compared as canonical JSON, byte for byte, and so are its exports as HTML and Markdown. Exits with 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

try:
    import transcript_engine as transcript
except ModuleNotFoundError:
    if not {"-h", "--help"} & set(sys.argv[1:]):
        raise

REPEATER = """
const readline = require('node:readline');
const t = require('transcript-engine');
const run = {
  entries: (file) => t.entries(file).toArray(),
  request: async (file) => [await t.request(file)],
  usage: (file) => t.usage({ in: file, by: ['model'], timezone: 'UTC', cache: false }),
  search: (file) => t.search('a', { in: file, cache: false }).toArray(),
  verify: (file) => t.verify(file),
  html: (file) => written(file, 'html'),
  markdown: (file) => written(file, 'markdown'),
};
async function written(file, format) {
  const out = `${process.argv[1]}.${format}`;
  await t.exportSession(file, out, { format, force: true });
  return [{ text: require('node:fs').readFileSync(out, 'utf8') }];
}
(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [name, file] = JSON.parse(line);
    let answer;
    try {
      answer = { records: await run[name](file) };
    } catch (error) {
      answer = { error: error.kind ?? String(error) };
    }
    process.stdout.write(JSON.stringify(answer) + '\\n');
  }
})();
"""

WRITTEN = tempfile.TemporaryDirectory()
OUT = Path(WRITTEN.name)


def written(file: str, format: Any) -> list[dict[str, Any]]:
    """Returns the text of an export."""
    out = OUT / format
    transcript.export(file, out, format=format, force=True)
    return [{"text": out.read_bytes().decode()}]


FUNCTIONS: dict[str, Any] = {
    "entries": lambda file: list(transcript.entries(file)),
    "request": lambda file: [transcript.request(file)],
    "usage": lambda file: transcript.usage([file], by=["model"], timezone="UTC", cache=False),
    "search": lambda file: list(transcript.search("a", [file], cache=False)),
    "verify": lambda file: transcript.verify(file),
    "html": lambda file: written(file, "html"),
    "markdown": lambda file: written(file, "markdown"),
}

COMMANDS = {
    "entries": ["replay", "--json", "{}"],
    "request": ["resume", "--json", "{}"],
    "usage": ["usage", "--json", "--by", "model", "--timezone", "UTC", "--no-cache", "{}"],
    "search": ["search", "--json", "--no-cache", "a", "--in", "{}"],
    "verify": ["verify", "--json", "{}"],
    "html": ["export", "--html", "-", "{}"],
    "markdown": ["export", "--markdown", "-", "{}"],
}


def canonical(value: Any) -> bytes:
    """Numbers as JavaScript reads them: it has no others."""

    def number(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: number(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [number(inner) for inner in value]
        if isinstance(value, float) and value in (float("inf"), float("-inf")):
            # JSON.stringify has no text for them.
            return None
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            try:
                wide = float(value)
            except OverflowError:
                return None
            return int(wide) if wide.is_integer() and abs(wide) < 2**63 else wide
        return value

    return json.dumps(number(value), sort_keys=True, separators=(",", ":")).encode()


class Node:
    """A process of Node that runs functions one by one."""

    def __init__(self, project: Path) -> None:
        self._process = subprocess.Popen(
            ["node", "-e", REPEATER, str(OUT / "node")], cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def run(self, name: str, file: str) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write((json.dumps([name, file]) + "\n").encode())
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def in_python(name: str, file: str) -> dict[str, Any]:
    try:
        return {"records": FUNCTIONS[name](file)}
    except transcript.TranscriptError as error:
        return {"error": error.kind}


def in_rust(command: str, name: str, file: str) -> dict[str, Any]:
    arguments = [argument.replace("{}", file) for argument in COMMANDS[name]]
    done = subprocess.run([command, *arguments], capture_output=True)
    if arguments[0] == "export":
        records = [{"text": done.stdout.decode()}] if done.returncode == 0 else []
    else:
        records = [json.loads(line) for line in done.stdout.splitlines()]
    return {"records": records} if records else {"error": done.stderr.decode(errors="replace")}


def without_process(answer: dict[str, Any]) -> dict[str, Any]:
    """Drops fields that differ from run to run, such as durations."""
    for record in answer.get("records", []):
        for name in ("millis", "seconds", "generated"):
            record.pop(name, None)
    return answer


def generated(rng: random.Random, folder: Path, count: int) -> list[Path]:
    """Writes sessions with branches, calls, compactions, duplicates and entries without parents."""
    files: list[Path] = []
    for number in range(count):
        session = f"{number:08x}-0000-4000-8000-{rng.getrandbits(48):012x}"
        lines: list[str] = []
        uuids: list[str] = []
        for at in range(rng.randrange(1, 40)):
            uuid = f"{rng.getrandbits(32):08x}-0000-4000-8000-{at:012x}"
            parent = uuids[-1] if uuids else None
            if uuids and rng.random() < 0.15:
                parent = rng.choice([*uuids, None, f"{rng.getrandbits(32):08x}-dead-4000-8000-000000000000"])
            kind = rng.choice(["user", "assistant", "assistant", "system", "attachment", "progress"])
            call = f"toolu_{at}"
            content: Any = rng.choice(["a question", "𝄞 ünï \u2028", [{"type": "text", "text": "an answer\ud83d\ude00"}]])
            if kind == "assistant" and rng.random() < 0.5:
                content = [{"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "ls", "n": 2**53 + 1}}]
            if kind == "user" and at and rng.random() < 0.6:
                content = [{"type": "tool_result", "tool_use_id": f"toolu_{at - 1}", "content": "a file"}]
            entry: dict[str, Any] = {
                "parentUuid": parent,
                "isSidechain": rng.random() < 0.05,
                "sessionId": session,
                "cwd": "/work",
                "version": "2.1.329",
                "type": kind,
                "uuid": uuid,
                "timestamp": f"2026-03-01T09:{at // 60:02}:{at % 60:02}.000Z",
            }
            if kind in ("user", "assistant"):
                entry["message"] = {"role": kind, "content": content}
            if kind == "assistant":
                usage = {"input_tokens": rng.randrange(1000), "output_tokens": rng.randrange(100)}
                entry["message"].update(id=f"msg_{at // 2}", model="claude-sonnet-4-5", usage=usage)
                entry["requestId"] = f"req_{at // 2}"
            if kind == "system" and rng.random() < 0.4:
                entry.update(subtype="compact_boundary", parentUuid=None, logicalParentUuid=parent)
                entry["compactMetadata"] = {"trigger": "auto", "preTokens": 100}
            lines.append(json.dumps(entry))
            uuids.append(uuid)
            if rng.random() < 0.05:
                lines.append(lines[-1])
        path = folder / f"{session}.jsonl"
        path.write_text("\n".join(lines) + "\n")
        files.append(path)
    return files


def damaged(rng: random.Random, folder: Path, sources: list[Path], count: int) -> list[Path]:
    """Writes copies with torn, glued, overwritten, repeated and missing parts."""
    files: list[Path] = []
    for number in range(count):
        data = bytearray(rng.choice(sources).read_bytes()[: 1 << 20])
        for _ in range(rng.randrange(1, 6)):
            if not data:
                break
            start = rng.randrange(len(data))
            end = min(len(data), start + rng.randrange(1, 300))
            kind = rng.randrange(5)
            if kind == 0:
                data[start:end] = b""
            elif kind == 1:
                data[start:end] = bytes(end - start)
            elif kind == 2:
                data[start:end] = rng.randbytes(end - start)
            elif kind == 3:
                data[start:start] = data[start:end]
            else:
                newline = data.find(b"\n", start)
                data[newline : newline + 1] = b""
        path = folder / f"{number:08x}-0000-4000-9000-{rng.getrandbits(48):012x}.jsonl"
        path.write_bytes(data)
        files.append(path)
    return files


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", required=True)
    parser.add_argument("--node", type=Path, required=True)
    parser.add_argument("--generate", type=int, default=0)
    parser.add_argument("--damage", type=int, default=0)
    parser.add_argument("paths", nargs="*", type=Path)
    arguments = parser.parse_args()
    rng = random.Random(7)
    node = Node(arguments.node)
    different = 0
    refused = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given = [file.resolve() for path in arguments.paths for file in (sorted(path.rglob("*.jsonl")) if path.is_dir() else [path])]
        for sub in ("generated", "damaged"):
            (folder / sub).mkdir()
        made = generated(rng, folder / "generated", arguments.generate)
        hurt = damaged(rng, folder / "damaged", [*given, *made], arguments.damage)
        for kind, files in [("given", given), ("generated", made), ("damaged", hurt)]:
            for file in files:
                for function in FUNCTIONS:
                    ours = without_process(in_python(function, str(file)))
                    theirs = without_process(node.run(function, str(file)))
                    rust = without_process(in_rust(arguments.command, function, str(file)))
                    if "error" in rust and "error" in ours and "error" in theirs:
                        refused += 1
                        continue
                    texts = [canonical(answer) for answer in (rust, ours, theirs)]
                    if len(set(texts)) > 1:
                        different += 1
                        names = ["command", "python", "node"]
                        sizes = [f"{name} {len(text)}" for name, text in zip(names, texts)]
                        print(f"{file}: {function}: {', '.join(sizes)}")
                        if different <= 3:
                            at = next(n for n in range(max(map(len, texts))) if len({t[n : n + 1] for t in texts}) > 1)
                            for name, text in zip(names, texts):
                                print("   ", name, text[max(0, at - 120) : at + 80])
            print(f"{kind}: {len(files)} sessions, {len(FUNCTIONS)} functions each; {different} differ so far; {refused} refused by all")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
