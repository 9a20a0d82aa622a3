#!/usr/bin/env python3
"""The race of hooks: a hook starts before the entry that it was called for is in the file.

Each run writes a session, calls a hook with the text of the answer, and appends the answer a while later, as a client
does. The hook reads the last answer of the session, once with `transcript tail --until text:…` and once without. Half of
the sessions have an equal text in an earlier turn, so that a stale read is detected by the id of the entry and not by its
text.

    python3 experiments/hook_race.py --bin target/release/transcript --runs 1000
"""

import argparse
import concurrent.futures
import json
import pathlib
import random
import subprocess
import tempfile
import threading
import time
import uuid


def entry(kind, parent, text, session):
    message = {"role": kind, "content": text}
    if kind == "assistant":
        message = {
            "id": f"msg_{uuid.uuid4().hex}",
            "role": kind,
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
        }
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "type": kind,
        "message": message,
        "uuid": str(uuid.uuid4()),
        "sessionId": session,
        "timestamp": "2026-01-31T12:00:00.000Z",
    }


def line(one):
    return (json.dumps(one, separators=(",", ":")) + "\n").encode()


def answers(output):
    """Returns the answers in the output of `transcript tail --json`."""
    records = [json.loads(record) for record in output.splitlines()]
    return [record for record in records if record["kind"] == "entry" and record["type"] == "assistant"]


def race(binary, folder, number, delay):
    """Returns whether the hook that waits, and the one that does not, read the right entry."""
    session = str(uuid.uuid4())
    path = pathlib.Path(folder) / f"{session}.jsonl"
    text = f"The answer of run {number}: 42."
    parent, lines = None, []
    turns = random.randint(1, 4)
    for turn in range(turns):
        for kind in ("user", "assistant"):
            is_same = kind == "assistant" and turn == turns - 1 and number % 2 == 0
            one = entry(kind, parent, text if is_same else f"{kind} {turn} of {number}", session)
            parent = one["uuid"]
            lines.append(one)
    prompt = entry("user", parent, "And now?", session)
    last = entry("assistant", prompt["uuid"], text, session)
    path.write_bytes(b"".join(map(line, lines + [prompt])))

    def client():
        time.sleep(delay)
        with open(path, "ab") as file:
            file.write(line(last))

    writer = threading.Thread(target=client)
    writer.start()
    command = [binary, "tail", str(path), "--json"]
    stale = subprocess.run(command, capture_output=True, check=True).stdout
    waited = subprocess.run(
        command + ["-n", "0", "--until", f"text:{text}", "--timeout", "60"], capture_output=True, check=True
    ).stdout
    writer.join()
    is_right = [bool(found) and found[-1]["uuid"] == last["uuid"] for found in (answers(waited), answers(stale))]
    return is_right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="target/release/transcript")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--delay", type=float, default=1.5, help="seconds until the entry is written")
    parser.add_argument("--at-once", type=int, default=25, help="how many races run side by side")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
            races = [pool.submit(race, args.bin, folder, number, args.delay) for number in range(args.runs)]
            right = [done.result() for done in races]
    waited, stale = (sum(each[way] for each in right) for way in (0, 1))
    print(f"{args.runs} runs, the entry comes {args.delay} s after the hook starts")
    print(f"with --until: {waited} read the right entry, {args.runs - waited} a stale one")
    print(f"without:      {stale} read the right entry, {args.runs - stale} a stale one")
    return waited != args.runs


if __name__ == "__main__":
    raise SystemExit(main())
