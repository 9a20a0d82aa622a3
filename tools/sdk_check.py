#!/usr/bin/env python3
"""tools/sdk_check.py [--bin PATH] [--damaged DIR] [--first N] [--keep DIR]

Repairs the fixtures, and the damaged sessions in DIR (those of `repair_campaign --keep`), with `transcript repair --out`, and reads the
repaired sessions with the official TypeScript and Python SDKs. Each has to show the messages that `transcript replay --policy vendor` has on its
path, in that order and with the same content. The SDKs are those of tests/compat/run, which installs them once.

An SDK is not the client. A difference that one of these rules explains is counted under its name (docs/client-behaviour.md has the rules of
the client); any other is a failure:
- order: the SDKs put the parts of an answer and the results of its calls in the order of their times, the client in that of the file (CHAIN-8).
- no body: the SDKs show entries without content, which the client drops (FILE-6), and may end at one.
- pin: neither reads the line that says where the conversation ends (LEAF-6); it is the path to the entry where the SDK ends.
- tip: the Python SDK ends at the last message, also where a later system entry or attachment has another one above it (LEAF-2).
- queued: the TypeScript SDK shows a prompt that was queued during an answer, which is an attachment in the file, as a message of the user (since 0.3.332).
- kept list: the Python SDK does not know what a compaction kept. The TypeScript SDK follows the list of every boundary, the client that of the
  last one (COMPACT-8); it does not cut at a boundary with a parent (COMPACT-2), and reaches parts of answers outside of the list (COMPACT-7).
Exits with 1 if there is a failure."""
import argparse, collections, importlib.machinery, importlib.util, json, os, pathlib, re, shutil, subprocess, sys, tempfile, uuid

ROOT = pathlib.Path(__file__).resolve().parents[1]


def load(path):
    """The script at `path`, which has no ending, as a module."""
    loader = importlib.machinery.SourceFileLoader("compat", str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("compat", loader))
    loader.exec_module(module)
    return module


compat = load(ROOT / "tests" / "compat" / "run")


def fixtures():
    """Every session of fixtures/v1 that is a file of its own, not that of a subagent."""
    found = (path for folder in ("findings", "pains", "hostile", "sessions") for path in (ROOT / "fixtures" / "v1" / folder).rglob("*.jsonl"))
    return sorted(path for path in found if "subagents" not in path.parts)


def repair(binary, path, out):
    """Writes a repaired session. Returns why it was refused, or None."""
    done = subprocess.run([binary, "repair", path, "--json", "--out", out], capture_output=True, text=True)
    return None if out.exists() else done.stderr.strip().split(": ", 2)[-1]


def lines(path):
    for line in path.read_bytes().split(b"\n"):
        try:
            line = json.loads(line)
        except ValueError:
            continue
        if isinstance(line, dict):
            yield line


def keeps_a_list(path):
    return any(line.get("subtype") == "compact_boundary" and any(line.get("compactMetadata", {}).get(key) for key in ("preservedMessages", "preservedSegment"))
               for line in lines(path))


def queued_prompts(path):
    """The ids of the prompts that were queued during an answer: the one with which it was queued, else that of its line."""
    attachments = ((line, line["attachment"]) for line in lines(path) if isinstance(line.get("attachment"), dict))
    return {prompt.get("source_uuid") or line.get("uuid") for line, prompt in attachments if prompt.get("type") == "queued_command"}


def has_body(message):
    return isinstance(message, dict) and message.get("content") is not None


def by_answer(uuids, entries):
    """The uuids, those of one answer and of the results of its calls in a row as one sorted list."""
    calls, groups = {}, []
    blocks = lambda entry: [block for block in entry["message"]["content"] if isinstance(block, dict)] if isinstance(entry["message"]["content"], list) else []
    for uuid in uuids:
        if entries[uuid]["type"] == "assistant":
            calls.update((block.get("id"), entries[uuid]["message"].get("id")) for block in blocks(entries[uuid]) if block.get("type") == "tool_use")
    for uuid in uuids:
        entry = entries[uuid]
        owners = [calls.get(block.get("tool_use_id")) for block in blocks(entry)]
        answer = entry["message"].get("id") if entry["type"] == "assistant" else next(filter(None, owners), None)
        if answer and groups and groups[-1][0] == answer:
            groups[-1][1].append(uuid)
        else:
            groups.append((answer, [uuid]))
    return [sorted(group) for _, group in groups]


def difference(binary, name, path, ours, shown):
    """Whether an SDK shows the same as we: `equal`, the name of a rule, or what differs as a failure."""
    queued = queued_prompts(path) if name == "TypeScript" else ()
    without = [m for m in shown if m["uuid"] not in queued]
    if len(without) < len(shown):
        found = difference_of_messages(binary, name, path, ours, without)
        return "rule: queued" if found == "equal" else found
    return difference_of_messages(binary, name, path, ours, shown)


def difference_of_messages(binary, name, path, ours, shown):
    """The same for messages without the queued prompts."""
    bodies = [m for m in shown if has_body(m.get("message"))]
    if shown and shown[-1] not in bodies:
        return "rule: no body"

    def compare(ours):
        known = {entry["uuid"]: entry for entry in ours}
        order, other = list(known), [m["uuid"] for m in bodies]
        if sorted(order) != sorted(other):
            return f"shows {len(other)} messages, and we {len(order)}"
        if any((m["type"], m["message"]) != (known[m["uuid"]]["type"], known[m["uuid"]]["message"]) for m in bodies):
            return "a message reads differently"
        if by_answer(order, known) != by_answer(other, known):
            return "shows them in another order"
        return "equal" if order == other else "rule: order"

    found = compare(ours)
    if found in ("equal", "rule: order"):
        return found if len(bodies) == len(shown) else "rule: no body"
    try:
        to_its_end = compat.path_of(binary, path, leaf=bodies[-1]["uuid"]) if bodies else []
    except subprocess.CalledProcessError:  # out of reach for the client
        to_its_end = []
    if to_its_end and compare(to_its_end) in ("equal", "rule: order"):
        if any(line.get("type") == "last-prompt" and line.get("leafUuid") for line in lines(path)):
            return "rule: pin"
        if name == "Python":
            return "rule: tip"
    return "rule: kept list" if keeps_a_list(path) else found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[2])
    parser.add_argument("--bin", default="target/release/transcript")
    parser.add_argument("--damaged", type=pathlib.Path, help="a folder of damaged sessions, besides the fixtures")
    parser.add_argument("--first", type=int, default=500, help="how many of them")
    parser.add_argument("--keep", type=pathlib.Path, help="keep the repaired sessions in this folder")
    parser.add_argument("--verbose", action="store_true", help="name the sessions to which a rule applies")
    args = parser.parse_args()
    readers = compat.install(compat.TARGET)
    if not readers:
        return 0
    binary = os.path.abspath(args.bin)
    config = (args.keep or pathlib.Path(tempfile.mkdtemp())).resolve()
    folder = config / "projects" / re.sub("[^A-Za-z0-9]", "-", compat.PROJECT)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    groups = {"fixtures": fixtures(), "campaign": sorted(args.damaged.rglob("*.jsonl"))[:args.first] if args.damaged else []}
    repaired, refused = {}, 0  # by the id under which the SDKs find it: the group, the damaged file, the repaired one
    for group, paths in groups.items():
        for path in paths:
            id = str(uuid.uuid5(uuid.NAMESPACE_URL, path.name))
            out = folder / f"{id}.jsonl"
            why = repair(binary, path, out)
            if why is None:
                repaired[id] = group, path, out
            else:
                refused += 1
                print(f"  refused: {path.name}: {why}")
    print(f"{len(repaired)} sessions repaired, {refused} refused")
    ours = {id: compat.path_of(binary, out) for id, (_, _, out) in repaired.items()}
    environment = {**os.environ, "CLAUDE_CONFIG_DIR": str(config)}
    failed = 0
    for name, reader in readers.items():
        counts = collections.defaultdict(collections.Counter)
        done = subprocess.run([*reader, compat.PROJECT], input=json.dumps(list(repaired)), check=True, stdout=subprocess.PIPE, text=True, env=environment)
        read = json.loads(done.stdout)["sessions"]
        for id, (group, path, out) in repaired.items():
            found = "rule: kept list"
            if name == "TypeScript" or not keeps_a_list(out):
                found = difference(binary, name, out, ours[id], read[id]["messages"])
            if found != "equal" and (not found.startswith("rule") or args.verbose):
                print(f"  {name}: {path.name} ({id}): {found}")
            is_known = found == "equal" or found.startswith("rule")
            failed += not is_known
            counts[group][found if is_known else "different"] += 1
        for group, count in counts.items():
            print(f"{name}: {group}: " + ", ".join(f"{number} {what}" for what, number in sorted(count.items())))
    if not args.keep:
        shutil.rmtree(config)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
