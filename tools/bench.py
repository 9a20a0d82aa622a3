#!/usr/bin/env python3
"""tools/bench.py [table|growth] [--quick] [--data DIR] [--rounds N] [--write]

`table` measures every job for which there is a target, and common programs and both official SDKs on the same files: the median
of the wall times, its ratio to `wc -l`, and the peak memory of the process. The commands of a table alternate in rounds, so that
a busy machine slows all of them. `growth` measures time and memory from 1 MB to 4 GB, and from 10 to 10,000 sessions. A program that
is not installed is skipped with a note. Needs only Python; `make bench` and `make bench GROWTH=1` first build the programs."""
import argparse, glob, json, os, pathlib, platform, re, resource, shutil, statistics, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "benchmarks.md"
COMPAT = ROOT / "target" / "compat"  # where `make compat` installs the SDKs
SCREEN = 50  # lines
MAXRSS = 1 << 20 if sys.platform == "darwin" else 1 << 10  # units of ru_maxrss in a MiB
LONG = 5  # seconds: what takes longer runs in three rounds only

LOOP = ("import json,sys\nfor line in open(sys.argv[1],'rb'):\n  try: d=json.loads(line)\n  except ValueError: continue\n"
        "  if isinstance(d,dict): d.get('uuid'),d.get('parentUuid')")
PYTHON_READS = "import sys,claude_agent_sdk as s\nassert s.get_session_messages(sys.argv[1])"
PYTHON_LISTS = "import claude_agent_sdk as s\nassert s.list_sessions()"
NODE_READS = ("import{pathToFileURL as u}from'node:url';const[p,id]=process.argv.slice(1);const s=await import(u(p));"
              "if(!(await s.getSessionMessages(id,{})).length)process.exit(1)")

# What gen.py makes, by the name of the folder.
DATA = {"f1e6": ["file", "1e6"], "f1e7": ["file", "1e7"], "f1e8": ["file", "1e8"], "f2e8": ["file", "2e8"], "f1e9": ["file", "1e9"],
        "f4e9": ["file", "4e9"], "c1e9": ["compact", "1e9", "5e6"], "list100": ["dir", "100", "2.4e5"], "list2000": ["dir", "2000", "2.4e5"],
        "grow10": ["dir", "10", "1.2e5"], "grow100": ["dir", "100", "1.2e5"], "grow1000": ["dir", "1000", "1.2e5"],
        "grow10000": ["dir", "10000", "1.2e5"]}

skipped = []


def skip(what):
    if what not in skipped:
        skipped.append(what)
        print("skipped: " + what, file=sys.stderr)


# Running commands.

def start(command, output=os.devnull, env={}):
    """the process id; `output` is a path or a descriptor. Unlike a fork, which copies the tables of this process, a spawn is cheap"""
    actions = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    if output != os.devnull:
        actions[1] = (os.POSIX_SPAWN_DUP2, output, 1)
    return os.posix_spawnp(command[0], command, {**os.environ, **env}, file_actions=actions)


def run(command, env={}):
    """wall time in seconds and peak memory in MiB"""
    begin = time.monotonic()
    _, status, usage = os.wait4(start(command, env=env), 0)
    took = time.monotonic() - begin
    if status:
        raise OSError("%s ended with status %d" % (" ".join(map(str, command))[:120], os.waitstatus_to_exitcode(status)))
    return took, usage.ru_maxrss / MAXRSS


def first_screen(command, env={}):
    """the same until the first lines have been read from a pipe, which is then closed"""
    begin = time.monotonic()
    reads, writes = os.pipe()
    pid = start(command, writes, env)
    os.close(writes)
    lines = 0
    while lines < SCREEN and (block := os.read(reads, 1 << 16)):
        lines += block.count(b"\n")
    took = time.monotonic() - begin
    os.close(reads)
    usage = os.wait4(pid, 0)[2]
    return took, usage.ru_maxrss / MAXRSS


def written(command):
    """how many MiB a command prints"""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return sum(len(block) for block in iter(lambda: process.stdout.read(1 << 20), b"")) / 2**20


def rounds_of(rows, rounds):
    """(median time, most memory, how many runs) of each row; the rows alternate. None for one that fails"""
    seen = {row.name: [] for row in rows}
    for n in range(rounds):
        for row in rows:
            runs = seen[row.name]
            if runs is None or (n > 2 and runs[0][0] > LONG):
                continue
            try:
                runs.append((first_screen if row.screen else run)(row.command, row.env))
            except OSError as error:
                skip("%s: %s" % (row.name, error))
                seen[row.name] = None
    return {name: runs and (statistics.median(t for t, _ in runs), max(m for _, m in runs), len(runs)) for name, runs in seen.items()}


# Jobs, targets and tables.

class Row:
    """`most` has the targets: `x` times `wc -l`, `s`, `MiB`, `over` (MiB more than the output)"""

    def __init__(self, name, command, env={}, screen=False, **most):
        self.name, self.command, self.env, self.screen, self.most = name, [str(c) for c in command], env, screen, most


def seconds(t):
    return "%.2f s" % t if t >= 10 else "%.3f s" % t if t >= 0.1 else "%.1f ms" % (t * 1e3) if t >= 1e-3 else "%.1f µs" % (t * 1e6)


TARGETS = {"x": lambda n: "%gx `wc -l`" % n, "s": seconds, "MiB": lambda n: "%g MiB" % n, "over": lambda n: "output + %g MiB" % n}


class Report:
    def __init__(self):
        self.text, self.met, self.missed = [], 0, []

    def say(self, line=""):
        print(line, flush=True)
        self.text.append(line)

    def verdict(self, job, missed):
        """the last cell of a row that has a target"""
        self.met += not missed
        if missed:
            self.missed.append(job)
        return "**missed**" if missed else "met"

    def table(self, title, rows, rounds):
        """one table; the row `wc -l`, if there, is the unit"""
        rows = [row for row in rows if row]
        seen = rounds_of(rows, rounds)
        unit = (seen.get("`wc -l`") or [None])[0]
        self.say("**%s** (rounds: %d, load %.1f)\n" % (title, rounds, os.getloadavg()[0]))
        self.say("| command | median | x `wc -l` | peak memory | output | target | |\n| --- | ---: | ---: | ---: | ---: | --- | --- |")
        for row in rows:
            if not seen[row.name]:
                continue
            median, memory, runs = seen[row.name]
            output = written(row.command) if "over" in row.most or " resume" in row.name else None
            figures = {"x": median / unit if unit else 0, "s": median, "MiB": memory, "over": memory - (output or 0)}
            missed = [key for key, most in row.most.items() if figures[key] > most]
            target = "≤ " + ", ≤ ".join(TARGETS[key](most) for key, most in row.most.items()) if row.most else ""
            verdict = self.verdict("%s, %s" % (row.name, title), missed) if row.most else ""
            ratio = "%.*f" % (1 if figures["x"] < 100 else 0, figures["x"]) if unit else ""
            self.say("| %s | %s | %s | %s | %s | %s | %s |" % (
                row.name, seconds(median) + (" (%d runs)" % runs if runs < rounds else ""), ratio, mib(memory),
                "%.0f MiB" % output if output is not None else "", target, verdict))
        self.say()


def own():
    """the peak memory of this program in MiB: each process starts with it, and the system counts it as a peak of that process"""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MAXRSS


def mib(memory):
    return "%.0f MiB" % memory if memory > own() + 1 else "< %.0f MiB" % (own() + 1)


def machine():
    model = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as f:
            model = (re.findall(r"model name\s*: (.*)", f.read()) or [model])[0]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    commit = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    return "%s, %d cores, %.0f GiB, load %.1f at the start; commit %s." % (model, os.cpu_count(), memory, os.getloadavg()[0], commit or "unknown")


# Files.

class Data:
    def __init__(self, folder, gen, temp):
        self.folder, self.gen, self.temp = pathlib.Path(folder or temp / "data"), gen, temp

    def get(self, name):
        """the folder with this name; made if there is none, or None"""
        folder = self.folder / name
        if not folder.exists():
            if not self.gen.exists():
                skip("no %s (--gen FILE), which makes the sessions that --data DIR lacks" % os.path.relpath(self.gen, ROOT))
                return None
            what, *sizes = DATA[name]
            part = folder.with_name(name + ".part")
            shutil.rmtree(part, ignore_errors=True)
            print("making %s in %s" % (" ".join(DATA[name]), folder), file=sys.stderr)
            subprocess.run([sys.executable, self.gen, what, str(part) + "/", *sizes], check=True, stdout=subprocess.DEVNULL)
            part.rename(folder)
        return folder

    def session(self, name):
        folder = self.get(name)
        found = sorted(folder.glob("*.jsonl")) if folder else []
        if found:
            run(["cat", str(found[0])])  # into the page cache
        return found[0] if found else None

    def config(self, session):
        """a configuration of the client in which this is the only session"""
        folder = self.temp / "config" / session.parent.name
        link = folder / "projects" / "-bench" / session.name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            link.symlink_to(session.resolve())
        return folder

    def cut(self, session, size):
        """a session of at most this size: the start of another one, up to the end of a turn"""
        out = self.temp / session.name
        size = min(size, session.stat().st_size)
        with open(session, "rb") as source, open(out, "wb") as to:
            source.seek(max(0, size - (1 << 20)))
            lines = source.read(1 << 20).rpartition(b"\n")[0] + b"\n"
            last = lines.rfind(b'"turn_duration"')
            end = lines.index(b"\n", last) + 1 if last >= 0 else len(lines)
            left = max(0, size - (1 << 20)) + end
            source.seek(0)
            while left:
                block = source.read(min(left, 1 << 20))
                to.write(block)
                left -= len(block)
        return out


def sdks():
    """the Python that has its SDK, and the path of the SDK for node; None for what is missing"""
    python = None
    for candidate in (str(COMPAT / "py" / "bin" / "python"), sys.executable):
        if shutil.which(candidate) and not subprocess.run([candidate, "-c", "import claude_agent_sdk"], capture_output=True).returncode:
            python = python or candidate
    module = COMPAT / "ts" / "node_modules" / "@anthropic-ai" / "claude-agent-sdk" / "sdk.mjs"
    node = module if module.exists() and shutil.which("node") else None
    if not python:
        skip("no Python SDK (`make compat` installs it)")
    if not node:
        skip("no TypeScript SDK (`make compat` installs it), or no node")
    return python, node


def peers(data, session, python, node):
    jq = shutil.which("jq") or skip("jq is not installed")
    config = {"CLAUDE_CONFIG_DIR": str(data.config(session))}
    return [
        Row("Python `json.loads` loop", [sys.executable, "-c", LOOP, session]),
        jq and Row("`jq -c .uuid`", ["jq", "-c", ".uuid", session]),
        python and Row("Python SDK `get_session_messages`", [python, "-c", PYTHON_READS, session.stem], config),
        node and Row("TypeScript SDK `getSessionMessages`", ["node", "--input-type=module", "-e", NODE_READS, node, session.stem], config),
    ]


def units(session):
    return [Row("`cat`", ["cat", session]), Row("`wc -l`", ["wc", "-l", session])]


def table(o, data, report):
    t = [o.bin, "-q"]
    python, node = (None, None) if o.no_peers else sdks()

    def ours(words, session, **targets):
        return Row("`transcript %s`" % words, [*t, *words.split(), session], **targets)

    most = {"f1e7": {"whole": {"s": 0.025}}, "f2e8": {"whole": {"s": 0.4}, "resume": {"x": 8, "over": 32}, "screen": {"s": 0.05}},
            "f1e9": {"ids": {"x": 2, "MiB": 64}, "resume": {"x": 8, "over": 64}, "screen": {}}}
    for name, m in list(most.items())[:1 if o.quick else 3]:
        session = data.session(name)
        if not session:
            continue
        rows = units(session)
        rows += [ours("replay --format ids", session, **m.get("ids", {})), ours("replay --format ids --policy vendor", session)]
        rows.append(ours("replay --format json", session))
        for form in ("text", "markdown"):
            rows.append(ours("replay --format " + form, session, **m.get("whole", {})))
            if "screen" in m:
                whole = rows[-1]
                rows.append(Row("first %d lines of `--format %s`" % (SCREEN, form), whole.command, screen=True, **m["screen"]))
        rows += [ours("resume --request", session, **m.get("resume", {})), ours("resume --json", session)]
        if name == "f1e9":
            rows += [ours("tail -n 20", session, s=0.01), ours("tail --json --changes", session, s=1.2)]
        report.table("One session of %.0f MB" % (session.stat().st_size / 1e6), rows + ([] if o.no_peers else peers(data, session, python, node)), o.rounds)
    if not o.quick and (session := data.session("c1e9")):
        rows = units(session) + [ours("resume", session, s=0.02, MiB=32), ours("resume --request", session, s=0.02, MiB=32)]
        title = "One session of %.0f MB, compacted 5 MB before its end" % (session.stat().st_size / 1e6)
        report.table(title, rows + ([] if o.no_peers else peers(data, session, python, node)), o.rounds)
    if folder := data.get("list100" if o.quick else "list2000"):
        lists(o, report, folder, python, node)
    start_up(o, report, data.temp)
    other(o, report, data)


def lists(o, report, folder, python, node):
    sizes = [os.path.getsize(f) for f in glob.glob(str(folder / "projects" / "*" / "*.jsonl"))]
    config = {"CLAUDE_CONFIG_DIR": str(folder)}
    most = {} if o.quick else {"s": 0.05}
    report.table("%d sessions, %.0f MB" % (len(sizes), sum(sizes) / 1e6), [
        Row("`find` (names, sizes, times)", ["find", folder, "-name", "*.jsonl", "-printf", "%T@ %s %p\n"]),
        Row("`transcript list`", [o.bin, "-q", "list", "--root", folder / "projects"], **most),
        Row("`transcript list --json`", [o.bin, "-q", "list", "--json", "--root", folder / "projects"], **most),
        python and Row("Python SDK `list_sessions`", [python, "-c", PYTHON_LISTS], config),
        node and Row("TypeScript SDK `listSessions`", ["node", ROOT / "tests" / "compat" / "list.mjs", node], config),
    ], o.rounds)


def start_up(o, report, temp):
    empty = temp / "empty"
    empty.mkdir(exist_ok=True)
    report.table("Start", [
        Row("`true`", ["true"]),
        Row("`transcript --version`", [o.bin, "--version"], s=0.003),
        Row("`transcript list`, nothing there", [o.bin, "-q", "list", "--root", empty], s=0.003),
    ], 5 * o.rounds)


def other(o, report, data):
    report.say("**Inside a process, and the command itself**\n")
    report.say("| what | measured | target | |\n| --- | --- | --- | --- |")
    turn = pathlib.Path(o.bin).parent / "examples" / "turn"
    session = data.session("f1e7" if o.quick else "f2e8")
    if session and turn.exists():
        part = data.cut(session, 10**8)
        done = subprocess.run([turn, part], capture_output=True, text=True)
        if done.returncode:
            skip("the example turn: " + done.stderr.strip())
        else:
            took = json.loads(done.stdout)
            job = "`Session::request` after one more turn, %.0f MB" % (part.stat().st_size / 1e6)
            target = ("", "") if o.quick else ("≤ 1 ms", report.verdict(job, took["median"] > 0.001))
            report.say("| %s | %s, at most %s; the first one %s, after opening in %s | %s | %s |" % (
                job, *(seconds(took[key]) for key in ("median", "longest", "first", "open")), *target))
    elif session:
        skip("no %s (cargo build --release -p transcript-engine --example turn)" % turn)
    bench = [*os.environ.get("CARGO", "cargo").split(), "bench", "-q", "--locked", "-p", "transcript-writer", "--bench", "append", "--",
             "one `write` per line", "`append`, no sync"]
    done = subprocess.run(bench, cwd=ROOT, capture_output=True, text=True) if shutil.which(bench[0]) else None
    rates = re.findall(r"^\|.*\| (\d+) \| [\d.]+ \|$", done.stdout, re.M) if done else []
    if len(rates) == 2:
        bare, append = map(int, rates)
        verdict = report.verdict("`append`, no sync", append / bare < 0.5)
        report.say("| `append` of 2.4 KB, no sync | %s a second, bare `write` %s: %.2f | ≥ 0.5 | %s |" % (
            f"{append:,}", f"{bare:,}", append / bare, verdict))
    else:
        skip("append: " + (done.stderr.strip()[-300:] or "the bench printed no rates" if done else "no " + bench[0]))
    stripped = data.temp / "stripped"
    if shutil.which("strip") and not subprocess.run(["strip", "-o", stripped, o.bin], capture_output=True).returncode:
        size = stripped.stat().st_size / 1e6
        report.say("| stripped binary | %.1f MB | ≤ 8 MB | %s |" % (size, report.verdict("stripped binary", size > 8)))
    else:
        skip("strip is not installed")
    report.say()


# Growth.

def growth(o, data, report):
    words = ["replay --format ids", "resume --json", "replay --format text"]
    files = {size: data.session(size) for size in ("f1e6", "f1e7", "f1e8", "f1e9", "f4e9")[:3 if o.quick else 5]}
    by_size = [(f.stat().st_size, f) for f in files.values() if f]
    grows(o, report, "byte", 1e9, by_size, [size for size, _ in by_size], words, lambda word, f: [o.bin, "-q", *word.split(), f])
    roots = [data.get("grow%d" % n) for n in (10, 100, 1000, 10000)[:3 if o.quick else 4]]
    found = [(len(sizes), folder, sum(sizes)) for folder in roots if folder
             for sizes in [[os.path.getsize(f) for f in glob.glob(str(folder / "projects" / "*" / "*.jsonl"))]]]
    grows(o, report, "session", 1e6, [(n, folder) for n, folder, _ in found], [size for _, _, size in found], ["list --json"],
          lambda word, folder: [o.bin, "-q", *word.split(), "--root", folder / "projects"])


def grows(o, report, each, per, inputs, sizes, words, command):
    """a table with a row for each command and a column for each input, which is (how many, where)"""
    if not inputs:
        return
    amount = (lambda n: "%.0f MB" % (n / 1e6)) if each == "byte" else (lambda n: "%d sessions" % n)
    unit = "ns a byte" if each == "byte" else "µs a session"
    report.say("| command | %s | max / min from 10 MB | |\n| --- |%s ---: | --- |" % (
        " | ".join("%s%s" % (amount(n), " (%.0f MB)" % (size / 1e6) if each != "byte" else "") for (n, _), size in zip(inputs, sizes)),
        " ---: |" * len(inputs)))
    rows = {word: [Row("%s %d" % (word, n), command(word, where)) for n, where in inputs] for word in words}
    empty = Row("`transcript --version`", [o.bin, "--version"])
    seen = rounds_of([empty] + [row for of_word in rows.values() for row in of_word], o.rounds)
    # What every run takes, whatever it reads, does not grow.
    begin = seen[empty.name][0] if seen[empty.name] else 0
    for word, of_word in rows.items():
        figures = [seen[row.name] for row in of_word]
        cells, rates = [], []
        for figure, (n, _), size in zip(figures, inputs, sizes):
            cells.append("%s, %.2f %s, %s" % (seconds(figure[0]), (figure[0] - begin) / n * per, unit, mib(figure[1])) if figure else "-")
            if figure and size >= 1e7:
                rates.append((figure[0] - begin) / n)
        spread = max(rates) / min(rates) if len(rates) > 1 else None
        verdict = report.verdict("growth of `%s`" % word, spread > 1.3) if spread else ""
        report.say("| `transcript %s` | %s | %s | %s |" % (word, " | ".join(cells), "%.2f (≤ 1.3)" % spread if spread else "-", verdict))
    report.say("\nFor each %s without %s, the start.\n" % (each, seconds(begin)))


def write(region, lines):
    """replaces what is between the markers of a region of the document"""
    text = DOCUMENT.read_text()
    begin, end = "<!-- %s -->" % region, "<!-- end of %s -->" % region
    before, rest = text.split(begin)
    DOCUMENT.write_text(before + begin + "\n" + "\n".join(lines).rstrip() + "\n" + end + rest.split(end)[1])


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("mode", nargs="?", choices=["table", "growth"], default="table")
    a.add_argument("--quick", action="store_true", help="only 10 MB and 100 sessions; growth to 100 MB and 1,000 sessions")
    a.add_argument("--no-peers", action="store_true", help="without jq, Python and the SDKs, which take most of the time")
    a.add_argument("--data", help="folder of the sessions; missing ones are generated there and stay. Without it they are generated in target, and deleted")
    a.add_argument("--gen", type=pathlib.Path, default=ROOT.parent / "shared" / "bench" / "gen.py", help="the generator of sessions")
    a.add_argument("--rounds", type=int, default=7)
    a.add_argument("--bin", default=str(ROOT / "target" / "release" / "transcript"))
    a.add_argument("--write", action="store_true", help="write the tables into docs/benchmarks.md")
    o = a.parse_args()
    if not os.path.exists(o.bin):
        sys.exit("no %s: cargo build --release -p transcript-cli" % o.bin)
    report = Report()
    said = ["make bench", *["GROWTH=1"] * (o.mode == "growth")]
    options = ["--quick"] * o.quick + ["--no-peers"] * o.no_peers + ["--rounds %d" % o.rounds] * (o.rounds != 7) + ["--data DIR"] * bool(o.data)
    said += ['BENCH="%s"' % " ".join(options)] * bool(options)
    report.say("```sh\n%s\n```\n\n%s%s\n" % (" ".join(said), "A quick run, with few of the targets. " * o.quick, machine()))
    (ROOT / "target").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as temp:
        (table if o.mode == "table" else growth)(o, Data(o.data, o.gen, pathlib.Path(temp)), report)
    if skipped:
        report.say("Skipped: %s.\n" % "; ".join(skipped).replace(str(ROOT), "."))
    report.say("Targets met: %d, missed: %d%s." % (report.met, len(report.missed), " (%s)" % "; ".join(report.missed) if report.missed else ""))
    if o.write:
        write(o.mode, report.text)


if __name__ == "__main__":
    main()
