#!/usr/bin/env python3
"""Removes old sessions with `transcript prune --yes` while other processes append to them and capture them, and looks for lines that are
nowhere. Uses nothing of this project but the command.

    tests/prune_race.py [--bin BINARY] [--rounds N] [--seconds S] [--naive]

Each round makes sessions that were last changed 40 days ago and captured nine days ago (by faketime). Then three processes append numbered
lines to them, each with an `open` of its own, some of which stay open for a while, and set the old time again; three processes prune and one
captures, all of them killed at random moments; one burns a processor. Afterwards each line that was written is in the session once: in its file,
or in what the archive gives back if the file is gone. Nothing is left beside the sessions.

Needs faketime. `--naive` removes what the archive has by its name, as a script would, which has to lose lines, and the exit code is 1."""
import argparse, collections, json, os, pathlib, random, shutil, subprocess, sys, tempfile, time, uuid

OLD = 40 * 86400


def line(number):
    return json.dumps({"type": "user", "uuid": str(uuid.UUID(int=number)), "number": number}).encode() + b"\n"


def path_of(root, session):
    return root / "-p" / f"{session:08x}-2222-4333-8444-555555555555.jsonl"


def append(root, sessions, seed, until):
    """The writer. Prints each number, with the session, when it is written."""
    pick, number = random.Random(seed), (seed + 1) << 40
    paths = [path_of(root, session) for session in range(sessions)]
    while time.time() < until:
        path = pick.choice(paths)
        try:
            file = os.open(path, os.O_WRONLY | os.O_APPEND)
        except OSError:
            # It was removed; a client makes no session of that name.
            continue
        for _ in range(pick.choice([1, 1, 5, 30])):
            number += 1
            os.write(file, line(number))
            print(path.name, number)
        time.sleep(pick.choice([0, 0, 0, 0.001, 0.02]))
        os.utime(file, (time.time() - OLD,) * 2)
        os.close(file)
        time.sleep(pick.choice([0, 0.001, 0.01]))


def naive_prune(root, archive):
    """What people write: whatever is in the archive may go."""
    packs = list(archive.glob("packs/*"))
    for path in sorted(root.glob("-p/*.jsonl")) if packs else ():
        if time.time() - path.stat().st_mtime > 30 * 86400:
            path.unlink()


def one_round(args, folder, number, pick, total):
    root, archive = folder / "projects", folder / "archive"
    shutil.rmtree(folder)
    (root / "-p").mkdir(parents=True)
    env = dict(os.environ, TRANSCRIPT_ARCHIVE=str(archive), XDG_DATA_HOME=str(folder / "data"), HOME=str(folder), CLAUDE_CONFIG_DIR=str(folder))
    written = collections.defaultdict(list)
    for session in range(args.sessions):
        path = path_of(root, session)
        numbers = range(session * 1000, session * 1000 + 20)
        path.write_bytes(b"".join(map(line, numbers)))
        os.utime(path, (time.time() - OLD,) * 2)
        written[path.name] += numbers
    keep = ["faketime", "-f", "-9d", args.bin, "keep", "--root", root]
    prune = [args.bin, "prune", "--yes", "--root", root]
    if args.naive:
        prune = [sys.executable, __file__, "--prune", root, "--archive", archive]
    quiet = dict(env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run(keep, check=True, **quiet)
    until = time.time() + args.seconds
    writers = [subprocess.Popen([sys.executable, __file__, "--append", root, "--sessions", str(args.sessions), "--seed", str(number * 3 + writer), "--until", str(until)], stdout=subprocess.PIPE) for writer in range(3)]
    burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    commands = [prune, prune, prune, keep]
    running = [None] * 4
    time.sleep(args.seconds / 4)
    while time.time() < until:
        for at, child in enumerate(running):
            if child is None or child.poll() is not None:
                # The real one, below faketime, is killed with its group.
                running[at] = subprocess.Popen(commands[at], start_new_session=True, **quiet)
                total["prunes" if at < 3 else "keeps"] += 1
            elif pick.random() < 0.03:
                os.killpg(child.pid, 9)
                total["killed"] += 1
        time.sleep(0.01)
    outs = [writer.communicate()[0] for writer in writers]
    burner.kill()
    burner.wait()
    for child in running:
        if child is not None:
            child.wait()
    for out in outs:
        for name, at in (said.split() for said in out.decode().splitlines()):
            written[name].append(int(at))
    # What a kill left finishes.
    done = subprocess.run(keep, env=env, capture_output=True)
    back = folder / "back" / "projects"
    restored = subprocess.run([args.bin, "restore", "--all", "--to", back], env=env, capture_output=True)
    wrong = [(done.args, done.stderr)] if done.returncode else []
    wrong += [(restored.args, restored.stderr)] if restored.returncode else []
    for name, numbers in written.items():
        live, copy = root / "-p" / name, back / "-p" / name
        path = live if live.exists() else copy
        found = collections.Counter(json.loads(one)["number"] for one in path.read_bytes().splitlines()) if path.exists() else collections.Counter()
        total["lines"] += len(numbers)
        total["removed"] += not live.exists()
        total["lost"] += sum(at not in found for at in numbers)
        total["doubled"] += sum(count > 1 for count in found.values())
        if not copy.exists():
            wrong.append((name, "not restored"))
    left = [str(path) for path in root.rglob("*") if path.is_file() and path.name not in written]
    total["left"] += len(left)
    total["wrong"] += len(wrong)
    total["rounds"] += 1
    for one in [*wrong, *left]:
        print(f"round {number}: {one}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="target/debug/transcript")
    parser.add_argument("--rounds", type=int, default=42)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--naive", action="store_true")
    for hidden in ("--append", "--prune", "--archive", "--until"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.append:
        return append(pathlib.Path(args.append), args.sessions, args.seed, float(args.until))
    if args.prune:
        return naive_prune(pathlib.Path(args.prune), pathlib.Path(args.archive))
    if shutil.which("faketime") is None:
        return print("skipped: no faketime")
    args.bin = os.path.abspath(args.bin)
    total, pick = collections.Counter(), random.Random(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.rounds):
            place = pathlib.Path(folder).resolve() / "place"
            place.mkdir(exist_ok=True)
            one_round(args, place, number, pick, total)
    print(*(f"{name}={total[name]}" for name in ("rounds", "lines", "removed", "prunes", "keeps", "killed", "lost", "doubled", "left", "wrong")))
    return int(any(total[name] for name in ("lost", "doubled", "left", "wrong")))


sys.exit(main())
