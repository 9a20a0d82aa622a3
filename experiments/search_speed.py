#!/usr/bin/env python3
"""Measures `transcript search` over a tree of sessions, beside ripgrep and other programs.

    experiments/search_speed.py make TREE SESSIONS [--gen gen.py]
    experiments/search_speed.py run BINARY TREE [--rounds N] [--cold] [--only NAME …] [--peer 'NAME=COMMAND {}' …]

`make` writes sessions of about 1.1 MB each with the lines of gen.py. Their words come from 3,000 topics with 150 words each, out of 60,000
made-up ones; a session has 12 of them. `needle00042` is in one session, `crimsonwharf` in one of 100, a phrase and a Japanese one in one of
200, `E0502` in one of 50; one of 20 results is an error.

`run` prints a row for each query: the median and the 95th percentile of the wall times of whole processes, their CPU time and the most
memory, with `--no-cache`, and with filters that an earlier search made; with --cold also after the system has dropped the files
from memory. A query that takes a second runs in three rounds only. The row "selective" is another word each time. ripgrep counts
lines of JSON, on as many threads. {} in the command of a peer is the word; only plain words are given to it. Memory below what Python
itself takes, 16 MiB, is shown as that."""
import argparse, importlib.util, multiprocessing, os, pathlib, random, shutil, statistics, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAXRSS = 1 << 20 if sys.platform == "darwin" else 1 << 10  # units of ru_maxrss in a MiB
LONG = 1  # seconds: what takes longer runs in three rounds only

# Name, query, what ripgrep is given.
QUERIES = [
    ("rare word", "needle00042", ["-F", "needle00042"]),
    ("selective", None, None),
    ("in no session", "xqzzyvwk", ["-F", "xqzzyvwk"]),
    ("common word", "the", ["-i", "-F", "the"]),
    ("phrase", '"the \\"parser state\\" is lost"', ["-F", 'the \\"parser state\\" is lost']),
    ("two words", "crimsonwharf deadlock", None),
    ("expression", "/needle0004[0-9]/", ["needle0004[0-9]"]),
    ("without a literal", "/[a-z]{16}/", ["[a-z]{16}"]),
    ("filter alone", "role:user", None),
    ("Japanese", "遅い理由", ["-F", "遅い理由"]),
    ("structured", "tool:Bash error:true E0502", None),
]


# Making a tree.

def load(path):
    spec = importlib.util.spec_from_file_location("gen", path)
    gen = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gen)
    return gen


def vocabulary():
    r = random.Random(11)
    vowels = "a e i o u ai ea ou".split()
    syllables = [c + v for c in "b c d f g h j k l m n p r s t v w z br cr dr fl gr pl st tr sh ch th".split() for v in vowels]
    ends = ["", "", "n", "r", "s", "t", "l", "ck", "ng", "m"]
    words = sorted({"".join(r.choice(syllables) for _ in range(r.choice([2, 2, 3, 3, 4]))) + r.choice(ends) for _ in range(66000)})
    r.shuffle(words)
    return words[:60000]


def chunk(number, known, common):
    """some lines about one topic; a word is the more frequent the nearer it is to the start of the topic"""
    r = random.Random(number)
    words, weights, total = r.sample(known, 150), [], 0
    for place in range(150):
        total += 1 / (place + 1)
        weights.append(total)
    lines, size = [], 0
    word = lambda: r.choices(words, cum_weights=weights)[0] if r.random() < .4 else r.choice(common)
    while size < 6000:
        kind = r.random()
        if kind < .6:
            line = " ".join(word() for _ in range(r.randrange(6, 16))) + r.choice([".\n", ", ", " ", "\n\n"])
        elif kind < .9:
            line = ("    if let Some(\"%s\") = self.%s.get(&\"%s_%s\") {\n\t\treturn Err(\"bad \\\"%s\\\" C:\\\\tmp\");\n    }\n"
                    % tuple(word() for _ in range(5)))
        elif kind < .97:
            line = "→ %4d→ │ %s …— “%s” ✓\n" % (r.randrange(9999), word(), word())
        else:
            line = "日本語のテキスト 🚀 %s\n" % word()
        lines.append(line)
        size += len(line)
    return "".join(lines)


def write_session(number):
    r = random.Random(number * 7 + 1)
    project = "proj%02d" % (number % 40)
    session = WRITER(1000 + number, project)
    session.pool = "".join(CHUNKS[r.randrange(len(CHUNKS))] for _ in range(12))
    needles = ["needle%05d " % number]
    for every, at, text in [(100, 7, "crimsonwharf deadlock in the scheduler "), (200, 11, 'the "parser state" is lost after resume '),
                            (200, 13, "会話の検索が遅い理由 "), (50, 3, "error[E0502]: cannot borrow ")]:
        if number % every == at:
            needles.append(text)
    for needle in needles:
        at = r.randrange(len(session.pool) - 1)
        session.pool = session.pool[:at] + needle + session.pool[at:]
    folder = TREE / "projects" / ("-home-dev-src-" + project)
    folder.mkdir(parents=True, exist_ok=True)
    size = int(1.1e6 * max(.05, random.Random(number).lognormvariate(-.55, 1.05)))
    return session.write(str(folder / (session.sid + ".jsonl")), size)


def make(args):
    global CHUNKS, WRITER, TREE
    gen, TREE = load(args.gen), args.tree

    class Writer(gen.G):
        def turn(self):
            lines = super().turn()
            for line in lines:
                if "toolUseResult" in line and self.r.random() < .05:
                    line["message"]["content"][0]["is_error"] = True
            return lines

    known = vocabulary()
    CHUNKS, WRITER = [chunk(number, known, gen.WORDS) for number in range(3000)], Writer
    with multiprocessing.get_context("fork").Pool(2) as pool:
        written = list(pool.imap_unordered(write_session, range(args.sessions), chunksize=8))
    print(f"{args.sessions} sessions, {sum(size for size, _ in written)} bytes, {sum(lines for _, lines in written)} lines")


# Measuring.

def run(command, env):
    """wall time and CPU time in seconds, peak memory in MiB"""
    actions = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    begin = time.monotonic()
    pid = os.posix_spawnp(command[0], command, {**os.environ, **env}, file_actions=actions)
    _, _, usage = os.wait4(pid, 0)
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / MAXRSS


def forget(*folders):
    """makes the system drop the files in these folders from memory"""
    for folder in folders:
        for path in pathlib.Path(folder).rglob("*"):
            if path.is_file():
                fd = os.open(path, os.O_RDONLY)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(fd)


def seconds(t):
    return "%.1f s" % t if t >= 10 else "%.2f s" % t if t >= 1 else "%.0f ms" % (t * 1e3)


def row(command_of, env, rounds, before=None):
    """the figures of several runs as text; `command_of` has the number of the run"""
    runs = []
    while len(runs) < rounds and (len(runs) < 3 or runs[0][0] < LONG):
        if before:
            before()
        runs.append(run(command_of(len(runs)), env))
    walls = sorted(wall for wall, _, _ in runs)
    p95 = walls[min(len(walls) - 1, len(walls) * 95 // 100)]
    cpu = statistics.median(cpu for _, cpu, _ in runs)
    return (f"{seconds(statistics.median(walls))} | {seconds(p95)} | {seconds(cpu)} | "
            f"{max(memory for _, _, memory in runs):.0f} MiB")


def size_of(folder):
    return sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*") if path.is_file())


def measure(args):
    tree, scratch = args.tree.resolve(), pathlib.Path(tempfile.mkdtemp(prefix="search-speed-"))
    cache = scratch / "cache"
    env = {"CLAUDE_CONFIG_DIR": str(tree), "XDG_CACHE_HOME": str(cache), "HOME": str(scratch)}
    sessions = sum(1 for _ in tree.rglob("*.jsonl"))
    size = size_of(tree / "projects")
    print(f"{tree.name}: {sessions} sessions, {size / 1e9:.2f} GB; {os.cpu_count()} processors\n")
    search = [str(args.binary.resolve()), "search"]
    pick = random.Random(3)
    words = ["needle%05d" % pick.randrange(sessions) for _ in range(1000)]
    queries = [query for query in QUERIES if not args.only or query[0] in args.only]

    def ours(query, *options):
        return lambda number: [*search, *options, "--", query or words[number]]

    head = "| query | what | median | 95 % | CPU | memory |\n| --- | --- | --- | --- | --- | --- |"
    print(head)
    none = "xqzzyvwk"
    # Once, so that the files are in memory.
    run(ours(none, "--no-cache")(0), env)
    cold = (lambda: forget(tree, cache)) if args.cold else None
    if cold:
        print("| in no session | no cache, files not in memory |", row(ours(none, "--no-cache"), env, 3, cold), "|", flush=True)
        run(ours(none, "--no-cache")(0), env)
    first = row(ours(none), env, 3, lambda: shutil.rmtree(cache, ignore_errors=True))
    print("| in no session | first search, makes the filters |", first, "|", flush=True)
    for name, query, rg in queries:
        rounds = args.rounds if query else max(args.rounds, 40)
        done = subprocess.run([*search, "--no-cache", "--count", "--", query or words[0]], env={**os.environ, **env}, capture_output=True)
        hits = done.stdout.decode().strip()
        shown = f"{name}: `{query}`, {hits}" if query else f"{name}: `needleNNNNN`"
        print(f"| {shown} | no cache |", row(ours(query, "--no-cache"), env, rounds), "|", flush=True)
        print(f"| {name} | filters |", row(ours(query), env, rounds), "|", flush=True)
        if cold and name in ("rare word", "in no session"):
            print(f"| {name} | filters, files not in memory |", row(ours(query), env, 3, cold), "|", flush=True)
            run(ours(query, "--no-cache")(0), env)
        if rg and shutil.which("rg"):
            command = ["rg", "-j", str(os.cpu_count()), "-c", *rg, str(tree / "projects")]
            print(f"| {name} | rg |", row(lambda _: command, env, rounds), "|", flush=True)
        for peer in args.peer if query and query.isalnum() else []:
            title, _, command = peer.partition("=")
            command = ["sh", "-c", command.replace("{}", query)]
            print(f"| {name} | {title} |", row(lambda _: command, {}, min(rounds, 5)), "|", flush=True)
    filters = size_of(cache)
    print(f"\nFilters: {filters / 1e6:.1f} MB, {100 * filters / size:.2f} % of the files")
    shutil.rmtree(scratch)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("make")
    one.add_argument("tree", type=pathlib.Path)
    one.add_argument("sessions", type=int)
    one.add_argument("--gen", type=pathlib.Path, default=ROOT.parent / "shared" / "bench" / "gen.py", help="the generator of sessions")
    one.set_defaults(run=make)
    one = commands.add_parser("run")
    one.add_argument("binary", type=pathlib.Path)
    one.add_argument("tree", type=pathlib.Path)
    one.add_argument("--rounds", type=int, default=9)
    one.add_argument("--cold", action="store_true")
    one.add_argument("--only", nargs="*", default=[], help="names of rows")
    one.add_argument("--peer", action="append", default=[])
    one.set_defaults(run=measure)
    args = parser.parse_args()
    args.run(args)


main()
