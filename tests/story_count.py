#!/usr/bin/env python3
"""Counts what `replay --json` must hold, without any code of this project.

For each file: walks from the leaf that `replay` names to the root by `parentUuid`, and at each boundary of a
compaction on to what it ended (`logicalParentUuid`, else the last message above it in the file). Every user and
assistant entry on the way, with the other lines of its answer and the results of its calls, and those that a
boundary kept, must be in the story: each once, no child before its parent. `--in-context` must hold the entries
that `resume --json` counts. A walk that the file does not allow (a parent that no line has, a uuid that two
lines have) is named and counted apart: there the policy decides.

    python3 tests/story_count.py --bin target/release/transcript FILE|FOLDER...
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

HALF = re.compile("[\ud800-\udfff]")
LINKED = {"user", "assistant", "system", "attachment", "progress"}


def not_json(name):
    raise ValueError(f"{name} is not JSON")


def entries_of(path):
    """The entries of a file with a uuid, and whether each line could be read and each uuid is there once."""
    entries, is_sound = {}, True
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            text = line.decode()
            entry = json.loads(text, parse_constant=not_json)
            # Half of a pair of surrogates is no character.
            entry = json.loads(HALF.sub("\ufffd", json.dumps(entry, ensure_ascii=False)))
        except (ValueError, RecursionError):
            is_sound = False
            continue
        kind = entry.get("type") if isinstance(entry, dict) else None
        if not isinstance(kind, str) or kind not in LINKED:
            continue
        uuid = entry.get("uuid")
        if not isinstance(uuid, str) or not uuid:
            is_sound = False
            continue
        if uuid in entries:
            is_sound = False
            continue
        entry["line"] = number
        entries[uuid] = entry
    return entries, is_sound


def is_boundary(entry):
    return entry.get("subtype") == "compact_boundary"


def is_message(entry):
    """A user or assistant entry that says something; others break the chain of no client."""
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return entry["type"] in ("user", "assistant") and isinstance(content, (str, list))


def content_of(entry):
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def is_result(entry):
    return any("tool_use_id" in block for block in content_of(entry))


def walk(entries, leaf):
    """The uuids from the leaf to the root, and why the walk may not be the whole story."""
    found, why, at = [], None, leaf
    seen = set()
    while at is not None:
        if at in seen:
            return found, "cycle"
        if at not in entries:
            return found, "missing parent"
        seen.add(at)
        found.append(at)
        entry = entries[at]
        above = entry.get("parentUuid")
        if is_boundary(entry):
            segment = (entry.get("compactMetadata") or {}).get("preservedSegment") or {}
            named = [above, entry.get("logicalParentUuid"), segment.get("tailUuid")]
            named = [uuid for uuid in named if uuid in entries and entries[uuid]["line"] < entry["line"]]
            if named:
                above = named[0]
            else:
                before = [
                    other
                    for other, value in entries.items()
                    if value["line"] < entry["line"]
                    and value["type"] in ("user", "assistant")
                    and not value.get("isSidechain")
                ]
                above = max(before, key=lambda uuid: entries[uuid]["line"], default=None)
        at = above
    return found, why


def with_groups(entries, found):
    """Adds the other lines of each answer, and the results of the calls in it."""
    ids, calls = set(), set()
    side = {entries[uuid].get("isSidechain") for uuid in found}
    for uuid in found:
        entry = entries[uuid]
        if entry["type"] == "assistant" and isinstance(entry.get("message"), dict):
            ids.add(entry["message"].get("id"))
    ids.discard(None)
    for entry in entries.values():
        message = entry.get("message")
        if entry["type"] == "assistant" and isinstance(message, dict) and message.get("id") in ids:
            calls.update(block.get("id") for block in content_of(entry) if block.get("type") == "tool_use")
    every = set(found)
    for uuid, entry in entries.items():
        message = entry.get("message")
        if entry.get("isSidechain") not in side:
            continue
        if entry["type"] == "assistant" and isinstance(message, dict) and message.get("id") in ids:
            every.add(uuid)
        if entry["type"] == "user" and any(block.get("tool_use_id") in calls for block in content_of(entry)):
            every.add(uuid)
    return every


def kept(entries, found):
    """What the boundaries on the way kept, where they list it."""
    every = set()
    for uuid in found:
        metadata = entries[uuid].get("compactMetadata") if is_boundary(entries[uuid]) else None
        messages = (metadata or {}).get("preservedMessages") or {}
        every.update(uuid for uuid in messages.get("uuids") or [] if uuid in entries)
    return every


def run(binary, *arguments):
    done = subprocess.run([binary, *arguments], capture_output=True)
    records = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
    return done.returncode, records


def check(binary, path):
    """Returns (word, details) of one file."""
    code, records = run(binary, "replay", "--json", str(path))
    if code != 0 or not records:
        return "no story", f"exit {code}"
    head = records[0]
    shown = [record for record in records if record.get("kind") == "entry"]
    leaf = head.get("leaf")
    entries, is_sound = entries_of(path)
    messages = [record for record in shown if record.get("type") in ("user", "assistant")]
    lines = [record["line"] for record in messages]
    # Lines that were glued hold two entries.
    places = {(record["line"], record["offset"], record.get("uuid")) for record in messages}
    if len(places) != len(messages):
        return "TWICE", f"{len(messages) - len(places)} entries"
    place = {}
    for number, record in enumerate(shown):
        place.setdefault(record.get("uuid"), number)
    for record in shown:
        entry = entries.get(record.get("uuid"))
        parent = entry.get("parentUuid") if entry and not is_boundary(entry) else None
        # Kept entries are below the summary, and the results of an answer below all of its lines.
        if is_sound and parent in place and place[parent] > place[record["uuid"]] and not is_result(entries[parent]) and not record.get("inContext"):
            return "ORDER", f"line {record['line']} is before its parent"
    code, context = run(binary, "replay", "--json", "--in-context", str(path))
    in_context = [record["line"] for record in context if record.get("kind") == "entry"]
    marked = [record["line"] for record in shown if record.get("inContext")]
    if sorted(set(marked)) != sorted(set(in_context)):
        return "CONTEXT", f"{len(in_context)} entries with --in-context, {len(marked)} marked in the story"
    code, resumed = run(binary, "resume", "--json", str(path))
    resumed = resumed[0].get("entries") if resumed else None
    listed = [record.get("uuid") for record in context if record.get("kind") == "entry"]
    if resumed != listed:
        return "RESUME", f"{len(listed)} entries with --in-context, {len(resumed or [])} of resume"
    if leaf is None or leaf not in entries:
        return "no leaf", f"{len(lines)} messages"
    found, why = walk(entries, leaf)
    wanted = with_groups(entries, found) | kept(entries, found)
    # By uuid: of copies, the policy chooses the line.
    wanted = {uuid for uuid in wanted if is_message(entries[uuid])}
    there = {record.get("uuid") for record in messages}
    missing = sorted(entries[uuid]["line"] for uuid in wanted - there)
    more = sorted(record["line"] for record in messages if record.get("uuid") not in wanted)
    boundaries = sum(is_boundary(entries[uuid]) for uuid in found)
    if missing:
        return ("MISSING" if is_sound else "missing, damaged file"), f"{len(missing)}: lines {missing[:8]}, boundaries {boundaries}"
    if why or not is_sound:
        return f"holds it; {why or 'damaged file'}", f"{len(more)} more"
    if more:
        return "holds it and more", f"{len(more)}: lines {more[:8]}, boundaries {boundaries}"
    return ("equal, compacted" if boundaries else "equal"), ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="target/release/transcript")
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    files = []
    for path in arguments.paths:
        files.extend(sorted(path.rglob("*.jsonl")) if path.is_dir() else [path])
    counts = {}
    for path in files:
        word, details = check(arguments.bin, path)
        counts[word] = counts.get(word, 0) + 1
        if not word.startswith("equal") and word != "no story":
            print(f"{path}: {word}: {details}")
    for word, count in sorted(counts.items()):
        print(f"{count:6} {word}")
    sys.exit(any(word.isupper() for word in counts))


if __name__ == "__main__":
    main()
