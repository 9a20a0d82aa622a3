#!/usr/bin/env python3
"""Kills `transcript append` again and again, and looks in the file for what it acknowledged.
Uses nothing of this project but the command. With `--naive` a writer as people write them must fail."""
import argparse, collections, json, os, random, subprocess, sys, tempfile, threading, time, uuid

SIZES = [1, 30, 100, 100, 300, 300, 999]  # bytes of text; none divides a page


def naive(path):
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for command in sys.stdin:
        entry = {"uuid": str(uuid.uuid4()), "text": json.loads(command)["user"]}
        os.write(file, json.dumps(entry).encode())
        os.write(file, b"\n")
        os.write(1, json.dumps({"ok": True, "entries": [{"uuid": entry["uuid"]}]}).encode() + b"\n")


def feed(pipe, pick):
    """Sends commands until nobody reads them: many are on their way at any time."""
    try:
        while True:
            size = pick.choice([4097, 65537] if pick.random() < 0.004 else SIZES)
            pipe.write(json.dumps({"op": "append", "user": "x" * size}).encode() + b"\n")
    except (BrokenPipeError, ValueError):
        pass


def live(command, pick, wanted):
    """Runs the writer until `wanted` answers came and some time has passed; returns all answers."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    threading.Thread(target=feed, args=(child.stdin, pick), daemon=True).start()
    lines = [line for _, line in zip(range(wanted), child.stdout)]
    time.sleep(pick.random() * 0.001)
    child.kill()
    lines += child.stdout  # said before it died
    child.wait()
    answers = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return [a for answer in answers for a in answer.get("entries", [])], sum(not a["ok"] for a in answers)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default="target/release/transcript")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--naive", nargs="?", const="", help="test a naive writer instead")
    args = parser.parse_args()
    if args.naive:
        return naive(args.naive)
    pick, acked, refused, torn = random.Random(), [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"{uuid.uuid4()}.jsonl")
        naively = [sys.executable, __file__, "--naive", path]
        command = [args.bin, "append", path, "--create"] if args.naive is None else naively
        for _ in range(args.kills):
            answers = live(command, pick, pick.randrange(250))
            acked, refused = acked + answers[0], refused + answers[1]
            with open(path, "ab+") as file:
                torn += file.tell() > 0 and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n"
        data = open(path, "rb").read()
    lines = data.split(b"\n")[:-1]
    seen, bad, orphans = collections.Counter(), 0, 0
    for line in lines:
        try:
            entry = json.loads(line)
            parent = entry.get("parentUuid")
            orphans += parent not in seen if parent else bool(seen) and args.naive is None
            seen[entry["uuid"]] += 1
        except ValueError:
            bad += 1
    placed = [(a["offset"], a["offset"] + a["len"], a["uuid"].encode()) for a in acked if "offset" in a]
    moved = sum(data[end : end + 1] != b"\n" or id not in data[at:end] for at, end, id in placed)
    lost, doubled = sum(a["uuid"] not in seen for a in acked), sum(n > 1 for n in seen.values())
    found = dict(lost=lost, moved=moved, doubled=doubled, bad=bad, orphans=orphans, refused=refused)
    found["too_few"] = max(0, args.kills * 100 - len(acked))
    counts = dict(kills=args.kills, acknowledged=len(acked), lines=len(lines), torn_tails=torn, **found)
    print(*(f"{name}={count}" for name, count in counts.items()))
    return int(any(found.values()))


sys.exit(main())
