#!/usr/bin/env python3
"""experiments/agents_peers.py --sessions DIR|--home DIR [--agentsview PROGRAM] [--agent-sessions DIR] [--transcript PATH] [CLIENT ...]

Compares what `transcript`, agentsview (`pip install agentsview==0.46.1`) and agent-sessions (a library; with --agent-sessions, agents_peers.rs is built with it in DIR) show of sessions of other agents with what the agents themselves sent after a resume. DIR has `CLIENT/CASE/store` and `expected.json`
with the items of the real request, and markers (U01 for a prompt, A02 for an answer) in every text. Counts for each client the sessions whose live markers come in the order of the
client, and what becomes of the texts that are in the files and were not sent: rewound, reverted, superseded or compacted away. With --home, a home folder of any size is read by all
instead, twice each: seconds and memory."""
import argparse, glob, json, os, pathlib, re, resource, shutil, sqlite3, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MARK = re.compile(r"\b[UA]\d{2,4}[a-z]?\b")
PLACES = {"codex": ".codex", "gemini": ".gemini", "opencode": ".local/share/opencode", "pi": ".pi/agent", "qwen": ".qwen", "copilot": ".copilot"}


def marks(texts):
    found = [mark for text in texts for mark in MARK.findall(re.sub(r"\\+[nrt]", " ", text))]
    return list(dict.fromkeys(found))


def of_items(items, kinds=("user", "assistant", "summary")):
    return marks(item.get("text") or "" for item in items or [] if item["kind"] in kinds)


class Transcript:
    def __init__(self, program, client, home):
        self.command = [str(program), "replay", "--agent", client, "--root", str(home / PLACES[client]), "--format", "items"]

    def session(self, id):
        """what is live, and what is shown as something else"""
        done = subprocess.run([*self.command, id], capture_output=True, text=True)
        if done.returncode:
            return [], []
        read = json.loads(done.stdout)
        return of_items(read["live"]), of_items([item for branch in read["branches"] for item in branch] + read["compacted"], ("user", "assistant", "summary", "context"))


class AgentsView:
    def __init__(self, program, client, home):
        data = home / "agentsview"
        environment = {"HOME": str(home), "PATH": os.environ["PATH"], "AGENTSVIEW_DATA_DIR": str(data), "AGENT_VIEWER_DATA_DIR": str(data), "AGENTSVIEW_NO_DAEMON": "1"}
        done = subprocess.run([str(program), "sync"], capture_output=True, text=True, env=environment)
        found = glob.glob(str(home) + "/**/sessions.db", recursive=True)
        if not found:
            raise RuntimeError("agentsview makes no database: %.300s" % (done.stderr or done.stdout))
        self.database = sqlite3.connect(found[0])

    def session(self, id):
        rows = self.database.execute("SELECT content FROM messages JOIN sessions ON sessions.id = messages.session_id WHERE sessions.id LIKE ? ORDER BY messages.ordinal", ("%" + id,))
        return marks(row[0] or "" for row in rows), []


AGENT_SESSIONS = """[package]
name = "agents-peers"
version = "0.0.0"
edition = "2024"
[dependencies]
agent-sessions = "=0.3.0"
serde_json = "1"
[workspace]
"""


def build_agent_sessions(folder):
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / "Cargo.toml").write_text(AGENT_SESSIONS)
    shutil.copy(pathlib.Path(__file__).with_suffix(".rs"), folder / "src/main.rs")
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=folder, check=True)
    return folder / "target/release/agents-peers"


class AgentSessions:
    def __init__(self, program, client, home):
        done = subprocess.run([str(program), client, str(home / PLACES[client])], capture_output=True, text=True, check=True)
        self.read = [json.loads(line) for line in done.stdout.splitlines()]

    def session(self, id):
        """The library reads files and joins none. Gemini CLI names a file by the start of the id; a session in several files is that of the last name."""
        found = [read for read in self.read if id in read["of"] or pathlib.Path(read["of"]).stem.endswith("-" + id[:8])]
        return marks(found[-1]["texts"] if found else []), []


def unpack(store, home):
    shutil.copytree(store, home, dirs_exist_ok=True)
    for path in home.rglob("*.db*.zst"):
        subprocess.run(["zstd", "-q", "-d", "-f", "--rm", str(path)], check=True)


def compare(options):
    readers = {"transcript": lambda *where: Transcript(options.transcript, *where)}
    if options.agentsview:
        readers["agentsview"] = lambda *where: AgentsView(options.agentsview, *where)
    if options.agent_sessions:
        readers["agent-sessions"] = lambda *where: AgentSessions(options.agent_sessions, *where)
    print("| agent (sessions, texts that were not sent) | " + " | ".join("%s: in order; shown apart, shown as sent, not shown" % name for name in readers) + " |")
    print("| --- |" + " --- |" * len(readers))
    for client in options.client or PLACES:
        sums = {name: [0, 0, 0, 0] for name in readers}
        sessions = dead = 0
        for path in sorted(glob.glob("%s/%s/*/expected*.json" % (options.sessions, client))):
            expected = json.load(open(path))
            with tempfile.TemporaryDirectory() as folder:
                home = pathlib.Path(folder)
                (home / PLACES[client]).parent.mkdir(parents=True, exist_ok=True)
                unpack(os.path.dirname(path) + "/store", home / PLACES[client])
                programs = {name: make(client, home) for name, make in readers.items()}
                sent_by_any = {mark for session in expected["sessions"] for mark in of_items(session["live"])}
                stored = set(expected["markers"].get("notLiveButStored") or [])
                gone = {mark for mark in stored if MARK.fullmatch(mark)} - sent_by_any
                dead += len(gone)
                seen = {name: (set(), set()) for name in readers}
                for session in expected["sessions"]:
                    for name, program in programs.items():
                        live, other = program.session(session["id"])
                        if session["live"] is None:
                            # The agent refuses the session: what is shown of it is shown apart.
                            seen[name][1].update(live, other)
                            continue
                        sums[name][0] += live == of_items(session["live"])
                        seen[name][0].update(live), seen[name][1].update(other)
                sessions += sum(session["live"] is not None for session in expected["sessions"])
                for name, (live, other) in seen.items():
                    sums[name][1] += len(gone & other - live)
                    sums[name][2] += len(gone & live)
                    sums[name][3] += len(gone - live - other)
        row = ["%s (%d, %d)" % (client, sessions, dead)] + ["%d; %d, %d, %d" % tuple(sums[name]) for name in readers]
        print("| " + " | ".join(row) + " |", flush=True)


def measure(options):
    home = pathlib.Path(options.home).resolve()
    size = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
    print("%d MB" % (size // 1_000_000))
    clients = [client for client in PLACES if (home / PLACES[client]).exists()]
    with tempfile.TemporaryDirectory() as data:
        environment = {"HOME": str(home), "PATH": os.environ["PATH"], "AGENTSVIEW_DATA_DIR": data, "AGENT_VIEWER_DATA_DIR": data, "AGENTSVIEW_NO_DAEMON": "1", "XDG_CACHE_HOME": data}
        agents = [part for client in clients for part in ("--agent", client)]
        commands = {"transcript " + name: [str(options.transcript), *words, *agents] for name, words in
                    {"list": ["list"], "usage": ["usage"], "search": ["search", "quokka"], "usage --no-cache": ["usage", "--no-cache"]}.items()}
        if options.agentsview:
            commands["agentsview sync"] = [str(options.agentsview), "sync"]
        if options.agent_sessions:
            commands.update({"agent-sessions %s" % client: [str(options.agent_sessions), client, str(home / PLACES[client])] for client in clients})
        print("| command | first | again |\n| --- | --- | --- |")
        for name, command in commands.items():
            print("| %s | %s | %s |" % (name, timed(command, environment), timed(command, environment)), flush=True)
        print("load %.1f" % os.getloadavg()[0])


def timed(command, environment):
    started = time.time()
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    exit_code = os.waitstatus_to_exitcode(status)
    return "%.2f s, %.0f MiB%s" % (time.time() - started, usage.ru_maxrss / 1024, ", exit %d" % exit_code if exit_code else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("client", nargs="*")
    parser.add_argument("--sessions")
    parser.add_argument("--agentsview")
    parser.add_argument("--agent-sessions", type=lambda path: build_agent_sessions(pathlib.Path(path).resolve()), metavar="DIR")
    parser.add_argument("--transcript", default=ROOT / "target/release/transcript")
    parser.add_argument("--home")
    options = parser.parse_args()
    if options.home:
        measure(options)
    elif options.sessions:
        compare(options)
    else:
        parser.error("--sessions or --home")


if __name__ == "__main__":
    sys.exit(main())
