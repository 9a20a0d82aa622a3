#!/usr/bin/env python3
"""Repairs sessions that are being written to, and kills `transcript repair` and `transcript move` before each of their system calls.
Uses nothing of this project but the command.

  live      a process appends numbered lines while `repair --keep-id` is asked for at random moments: afterwards each line is in the session
            once. The writers open the file once, for a few lines, or for each line, without a lock; the fourth is `transcript append`.
  exchange  `repair --keep-id` and `--undo` die before a system call, each in turn (needs strace): the name leads to the old or to the new
            file, and the same command finishes what the killed one began.
  move      the same for `move`: each session is whole at the old or at the new place, the same command finishes, and `--undo` brings back
            every byte and time. With `--naive` a repair or a move as people write it has to fail."""
import argparse, collections, hashlib, json, os, pathlib, random, re, shutil, subprocess, sys, tempfile, time

ID = "1999463e-ee08-4b08-99d5-2d9a36fd8293"
TORN = b'{"type":"pr-link","prNu\n'


def entry(name, parent, **more):
    message = {"role": "user", "content": name}
    entry = {"parentUuid": parent, "isSidechain": False, "type": "user", "message": message, "uuid": f"u-{name}", "sessionId": ID,
             "timestamp": "2026-01-01T00:00:00.000Z", **more}
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def damaged(**more):
    """A session with a torn line in its middle and a parent that nobody wrote."""
    return entry("a", None, **more) + TORN + entry("b", "u-a", **more) + entry("c", "u-gone", **more) + entry("d", "u-c", **more)


def write(how, path, lines, seed):
    """The writer: appends `lines` numbered lines as a client does, now and then after a torn one, without a lock."""
    pick, parent, file, number = random.Random(seed), "u-d", None, 0
    while number < lines:
        if file is None:
            file = os.open(path, os.O_WRONLY | os.O_APPEND)
        for _ in range(1 if how == "each" else pick.choice([1, 7, 100, 900])):
            if number < lines:
                os.write(file, (TORN if pick.random() < 0.003 else b"") + entry(str(number), parent))
                parent, number = f"u-{number}", number + 1
        if how != "once":
            os.close(file)
            file = None
        if how != "each" or pick.random() < 0.003:
            time.sleep(pick.choice([0, 0, 0.001, 0.005, 0.05, 0.15]))


def write_ours(binary, path, lines):
    """The same with `transcript append`, which refuses to open a session that is replaced between its reading and its opening."""
    pick, at, child = random.Random(lines), 0, None
    while at < lines:
        if child is None:
            child = subprocess.Popen([binary, "append", path, "--sync", "none"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        some = min(pick.choice([1, 7, 100, 900]), lines - at)
        commands = (json.dumps({"op": "append", "user": str(number)}) for number in range(at, at + some))
        try:
            child.stdin.write("".join(f"{command}\n" for command in commands).encode())
            child.stdin.flush()
        except BrokenPipeError:
            pass
        answers = [child.stdout.readline() for _ in range(some)]
        if not any(answers) and at == 0:
            child = None
            continue
        if not all(json.loads(answer)["ok"] for answer in answers):
            sys.exit("an append failed")
        at += some
        time.sleep(pick.choice([0, 0, 0.001, 0.005, 0.05, 0.15]))
    child.stdin.close()
    sys.exit(child.wait())


def naive_repair(path):
    """What people write: read, drop what does not parse, rename the result over the session."""
    def is_json(line):
        try:
            return bool(json.loads(line))
        except ValueError:
            return False
    lines = [line for line in open(path, "rb") if is_json(line)]
    with open(f"{path}.new", "wb") as file:
        file.writelines(lines)
    os.rename(f"{path}.new", path)


def live(args, folder):
    counts, pick = collections.Counter(), random.Random(args.seed)
    path = folder / f"{ID}.jsonl"
    for round in range(args.rounds):
        for old in folder.iterdir():
            old.unlink()
        path.write_bytes(damaged())
        how = ["once", "some", "each", "ours"][round % 4]
        writer = subprocess.Popen([sys.executable, __file__, "--bin", args.bin, "--write", how, "--path", path, "--lines", str(args.lines),
                                   "--seed", str(pick.random())])
        replaced = refused = 0
        while writer.poll() is None:
            time.sleep(pick.random() * pick.choice([0.01, 0.1, 0.4]))
            if args.naive:
                naive_repair(path)
                continue
            done = subprocess.run([args.bin, "repair", path, "--keep-id", "--json"], capture_output=True, text=True)
            if done.returncode == 1:
                refused += 1
            elif done.returncode == 0:
                old = json.loads(done.stdout).get("old")
                replaced += old is not None
                counts["midway"] += old is not None and os.path.getsize(old) > len(damaged()) and writer.poll() is None
                counts["nothing_to_do"] += old is None
            else:
                counts["failed"] += 1
                print(f"round {round}, {how}: {done.stderr}")
        counts["failed"] += writer.returncode != 0
        seen = collections.Counter()
        for line in path.read_bytes().split(b"\n"):
            try:
                seen[json.loads(line)["message"]["content"] if b'"user"' in line else ""] += 1
            except (ValueError, KeyError):
                pass
        said = [str(number) for number in range(args.lines)] + ["a", "b", "c", "d"]
        lost, doubled = sum(name not in seen for name in said), sum(seen[name] > 1 for name in said)
        if lost or doubled:
            print(f"round {round}, {how}: {lost} lost, {doubled} doubled, {replaced} replaced")
        counts.update(rounds=1, lines=args.lines, replaced=replaced, refused=refused, lost=lost, doubled=doubled)
        counts[f"rounds_{how}"] += 1
        if round % 100 == 99:
            print("live:", *(f"{name}={count}" for name, count in counts.items()), flush=True)
        counts[f"rounds_{how}_replaced"] += replaced > 0
    print("live:", *(f"{name}={count}" for name, count in counts.items()))
    return counts["lost"] + counts["doubled"] + counts["failed"]


def every_kill(prepare, command, check):
    """Runs a command that dies before a system call, for each that it makes, and calls `check` with its name and number. Returns the number of
    kills."""
    strace = ["strace", "-f", "-qq", "-o"]
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    kills = 0
    prepare()
    with tempfile.NamedTemporaryFile("r") as trace:
        subprocess.run([*strace, trace.name, *command], check=True, **quiet)
        calls = sorted(set(re.findall(r"^\d+ +(\w+)\(", trace.read(), re.M)))
    for call in calls:
        for number in range(1, 10_000):
            prepare()
            kill = ["-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={number}"]
            if subprocess.run([*strace, "/dev/null", *kill, *command], **quiet).returncode not in (-9, 137):
                break
            check(f"{call} {number}")
            kills += 1
    return kills


def snapshot(folder):
    """Every file below a folder, with its bytes and time."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def exchange(args, folder):
    path, failures = folder / f"{ID}.jsonl", 0
    repair = [args.bin, "repair", path, "--keep-id"]
    if args.naive:
        repair = [sys.executable, __file__, "--naive", "--write", "repair", "--path", path]

    def fresh():
        for old in folder.iterdir():
            old.unlink()
        path.write_bytes(damaged())
        os.utime(path, ns=(10**18, 10**18))

    def run(*more):
        return subprocess.run([args.bin, "repair", path, *more], capture_output=True, text=True)

    fresh()
    old = snapshot(folder)[path.name]
    subprocess.run(repair, check=True, stdout=subprocess.DEVNULL)
    new, after = path.read_bytes(), set(snapshot(folder))
    states = collections.Counter()

    def state(number, what):
        found = path.read_bytes() if path.exists() else None
        name = "old" if found == old[0] else "new" if found == new else "neither"
        states[name] += 1
        if name == "neither":
            print(f"{what}: killed before {number}: neither")

    def wrong(number, what, left):
        nonlocal failures
        failures += 1
        print(f"{what}: killed before {number}, then again: {sorted(left)}")

    def after_repair(number):
        state(number, "repair")
        kept = list(snapshot(folder).values())
        states["old kept as it was"] += old in kept
        done = run("--keep-id")
        left = snapshot(folder)
        leftover = {re.sub(r"\.\d+(?=\.lost)", "", name) for name in left} - after
        if done.returncode or path.read_bytes() != new or leftover or left.get(f"{path.name}.before-repair") != old:
            return wrong(number, "repair", left)
        if run("--undo").returncode or snapshot(folder)[path.name] != old:
            wrong(number, "repair, undone", snapshot(folder))

    kills = every_kill(fresh, repair, after_repair)
    print("exchange:", f"kills={kills}", *(f"{name.replace(' ', '_')}={count}" for name, count in states.items()), f"unfinished={failures}")
    neither = states["neither"] + kills - states["old kept as it was"]
    states.clear()

    def repaired():
        fresh()
        run("--keep-id")

    def after_undo(number):
        state(number, "undo")
        # The killed one may have ended its work: then there is nothing to undo.
        run("--undo")
        left = snapshot(folder)
        if left[path.name] != old or [name for name in left if "ing-" in name]:
            wrong(number, "undo", left)

    undone = 0 if args.naive else every_kill(repaired, [args.bin, "repair", path, "--undo"], after_undo)
    print("undo:", f"kills={undone}", *(f"{name.replace(' ', '_')}={count}" for name, count in states.items()), f"unfinished={failures}")
    return failures + neither + states["neither"]


def move(args, folder):
    """Two sessions with all that belongs to one."""
    root, old, new = folder / "projects", folder / "old", folder / "new"
    key = lambda path: re.sub("[^A-Za-z0-9]", "-", str(path))
    ids = [ID, ID.replace("1", "2", 1)]
    home = {place: root / key(path) for place, path in (("old", old), ("new", new))}
    failures, states = 0, collections.Counter()

    def fresh():
        shutil.rmtree(root, ignore_errors=True)
        for id in ids:
            own = home["old"] / id
            (own / "subagents" / "w").mkdir(parents=True)
            (own / "tool-results").mkdir()
            (own / "subagents" / "agent-a1.jsonl").write_bytes(entry("x", None, cwd=str(old)))
            (own / "subagents" / "w" / "agent-a2.jsonl").write_bytes(b"{}\n")
            (own / "tool-results" / "r.txt").write_bytes(b"result")
            (home["old"] / f"{id}.jsonl").write_bytes(entry("a", None, cwd=str(old)).replace(ID.encode(), id.encode()))
        for path in root.rglob("*"):
            if path.is_file():
                os.utime(path, ns=(10**18, 10**18))

    command = [args.bin, "move", old, new, "--root", root]
    if args.naive:
        command = ["sh", "-c", 'mkdir -p "$2" && mv "$1"/* "$2"', "sh", home["old"], home["new"]]
    run = lambda *more: subprocess.run([*command, *more], capture_output=True, text=True)
    fresh()
    before = snapshot(root)

    def at(place, files):
        """The sessions that are whole at a place; a moved one has a line more."""
        whole = set()
        for id in ids:
            own = {name: bytes for name, (bytes, _) in before.items() if id in name}
            moved = {name.replace(key(old), key(new)) if place == "new" else name: bytes for name, bytes in own.items()}
            if all(name in files and files[name][0].startswith(bytes) for name, bytes in moved.items()):
                whole.add(id)
        return whole

    def as_before():
        """Whether every byte is; a kill between a write and the call that sets the time leaves the time of the kill."""
        files = snapshot(root)
        states["other time"] += files != before
        return {name: bytes for name, (bytes, _) in files.items()} == {name: bytes for name, (bytes, _) in before.items()}

    def check(number, moved, command, what):
        nonlocal failures
        files = snapshot(root)
        here, there = at("old", files), at("new", files)
        for id in ids:
            states["both" if id in here & there else "old" if id in here else "new" if id in there else "neither"] += 1
        if here | there != set(ids):
            print(f"{what}: killed before {number}: neither: {sorted(files)}")
        done = subprocess.run(command, capture_output=True, text=True)
        files = snapshot(root)
        is_done = as_before() if moved == "old" else at("new", files) == set(ids) and not any(key(old) in name for name in files)
        if done.returncode or not is_done:
            failures += 1
            print(f"{what}: killed before {number}, then again: {done.stderr} {sorted(files)}")
        elif moved == "new" and not args.naive and (run("--undo").returncode or not as_before()):
            failures += 1
            print(f"{what}: killed before {number}, then undone: {sorted(snapshot(root))}")

    def moved():
        fresh()
        run()

    def back(number):
        """After a killed move its undo brings back what was moved, and the rest never left."""
        files = snapshot(root)
        run("--undo")
        here, there = at("old", snapshot(root)), at("new", snapshot(root))
        states["undone at once" if here == set(ids) else "undone in part"] += 1
        if here | there != set(ids):
            states["neither"] += 1
            print(f"move, undone: killed before {number}: neither: {sorted(snapshot(root))}")
        check(number, "new", command, "move, undone, moved")

    total = 0
    for what, prepare, killed, after in [
        ("move", fresh, command, lambda number: check(number, "new", command, "move")),
        ("move, then undo", fresh, command, back),
        ("undo", moved, [*command, "--undo"], lambda number: check(number, "old", [*command, "--undo"], "undo")),
    ][: 1 if args.naive else 3]:
        kills = every_kill(prepare, killed, after)
        print(f"{what}:", f"kills={kills}", *(f"{name.replace(' ', '_')}={count}" for name, count in states.items()), f"unfinished={failures}")
        total += states["neither"]
        states.clear()
    return failures + total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["live", "exchange", "move"])
    parser.add_argument("--bin", default="target/release/transcript")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--seed", default=None)
    parser.add_argument("--naive", action="store_true")
    parser.add_argument("--write", help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.bin = os.path.abspath(args.bin)
    if args.write == "repair":
        return naive_repair(args.path)
    if args.write == "ours":
        return write_ours(args.bin, args.path, args.lines)
    if args.write:
        return write(args.write, args.path, args.lines, args.seed)
    if shutil.which("strace") is None:
        print("skipped: no strace")
        args.parts = [part for part in args.parts if part == "live"]
    wrong = 0
    for part in args.parts:
        with tempfile.TemporaryDirectory() as folder:
            wrong += {"live": live, "exchange": exchange, "move": move}[part](args, pathlib.Path(folder).resolve())
    return int(wrong > 0)


sys.exit(main())
