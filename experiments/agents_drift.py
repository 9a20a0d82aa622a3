#!/usr/bin/env python3
"""experiments/agents_drift.py --clients DIR [--install] [--live] [--transcript PATH] [-v] [CLIENT[=VERSION] ...]

Runs other agents themselves and compares what they send after a resume with what `transcript replay --format items` reads from their files. With --install, first gets
the newest version of each client (or VERSION) from npm into DIR; a client that cannot be had is said and skipped. Each client then has a home folder of its own and
a scripted model on this machine: prompts in several processes, a call of a tool, and where the client has it a fork, a revert and a compaction. The request after a
last resume, up to the last prompt, must have the items that were read before it. With --live, the model is slow, and the session is read again and again while
the client writes it: what is live is always the beginning of what is live at the end, and no damage is reported but that of a last line that is not whole.

Without --install, run it without a network, such as in `unshare -rn sh -c 'ip link set lo up; …'`. Exits with 1 when something differs."""
import argparse, json, os, pathlib, re, shutil, signal, subprocess, sys, tempfile, threading, time

from agent_clients import AppServer, ScriptedModel, TIMEOUT, config

ROOT = pathlib.Path(__file__).resolve().parent.parent
MARK = re.compile(r"\b[UAOS]\d\d\b")
SECONDS_OF_MINUTE = 61


class Skipped(Exception):
    pass


class Client:
    """a client: `home` is what `--root` gets, below the folder that is the home folder of the user"""

    package = program = home = None
    needs_node_22 = False
    # Gemini CLI empties a session that is loaded in the minute in which it began.
    waits = False

    def __init__(self, clients, folder, port):
        self.folder, self.port = folder, port
        self.root, self.cwd = folder / self.home, folder / "work"
        self.root.mkdir(parents=True), self.cwd.mkdir()
        self.path = clients / self.name / "node_modules" / ".bin" / self.program
        path = [str(clients / "node" / "node_modules" / "node" / "bin")] if self.needs_node_22 else []
        self.environment = {"HOME": str(folder), "PATH": os.pathsep.join([*path, os.environ["PATH"]]), "NO_COLOR": "1", "TERM": "dumb", "CI": "1"}
        self.configure()

    def configure(self):
        pass

    def run(self, *arguments):
        command = [str(self.path), *map(str, arguments)]
        process = subprocess.Popen(command, cwd=self.cwd, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        try:
            output, _ = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            raise RuntimeError("%s does not end: %.600s" % (self.program, output)) from None
        if process.returncode:
            raise RuntimeError("%s exits with %d: %.600s" % (self.program, process.returncode, output))
        return output

    def begin(self, prompt):
        raise NotImplementedError

    def resume(self, prompt):
        raise NotImplementedError

    def scenarios(self):
        return {"talk": self.talk}

    def talk(self):
        self.begin("U01 question")
        self.resume("U02 call")
        self.resume("U03 question")


class Codex(Client):
    name, package, program, home = "codex", "@openai/codex", "codex", ".codex"

    def configure(self):
        (self.root / "config.toml").write_text(config(self.port))
        self.thread = None

    def turn(self, server, prompt, thread=None):
        thread = thread or self.thread
        server.call("turn/start", {"threadId": thread, "input": [{"type": "text", "text": prompt}]})
        return server.wait("turn/completed")["turn"]["id"]

    def server(self):
        return AppServer(str(self.path), self.root, self.cwd)

    def begin(self, prompt, more=()):
        with self.server() as server:
            self.thread = server.call("thread/start", {"cwd": str(self.cwd)})["thread"]["id"]
            return [self.turn(server, each) for each in (prompt, *more)]

    def resume(self, prompt):
        with self.server() as server:
            server.call("thread/resume", {"threadId": self.thread})
            self.turn(server, prompt)

    def session(self):
        return self.thread

    def scenarios(self):
        return {"talk": self.talk, "revert": self.revert, "fork": self.fork, "compact": self.compact}

    def revert(self):
        turns = self.begin("U01 question", ["U02 call", "U03 question"])
        with self.server() as server:
            server.call("thread/resume", {"threadId": self.thread})
            server.call("thread/revert", {"threadId": self.thread, "beforeTurnId": turns[1]})
            self.turn(server, "U04 question")

    def fork(self):
        turns = self.begin("U01 question", ["U02 call", "U03 question"])
        with self.server() as server:
            server.call("thread/resume", {"threadId": self.thread})
            self.thread = server.call("thread/fork", {"threadId": self.thread, "lastTurnId": turns[1]})["thread"]["id"]
            self.turn(server, "U04 question")

    def compact(self):
        self.begin("U01 question", ["U02 call"])
        with self.server() as server:
            server.call("thread/resume", {"threadId": self.thread})
            server.call("thread/compact/start", {"threadId": self.thread})
            server.wait("turn/completed")
            self.turn(server, "U03 question")


class ClaudeCode(Client):
    name, package, program, home = "claude-code", "@anthropic-ai/claude-code", "claude", ".claude"

    def configure(self):
        self.environment.update(CLAUDE_CONFIG_DIR=str(self.root), ANTHROPIC_BASE_URL="http://127.0.0.1:%d" % self.port, ANTHROPIC_API_KEY="x", IS_SANDBOX="1",
                                CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", DISABLE_AUTOUPDATER="1")
        self.root = self.root / "projects"

    def begin(self, prompt):
        self.run("--print", "--dangerously-skip-permissions", prompt)

    def resume(self, prompt):
        self.run("--print", "--dangerously-skip-permissions", "--continue", prompt)

    def scenarios(self):
        return {"talk": self.talk, "compact": self.compact}

    def compact(self):
        self.begin("U01 question")
        self.resume("U02 call")
        self.resume("/compact")
        self.resume("U03 question")


class Gemini(Client):
    name, package, program, home, waits, needs_node_22 = "gemini", "@google/gemini-cli", "gemini", ".gemini", True, True

    def configure(self):
        self.environment.update(GEMINI_API_KEY="x", GOOGLE_GEMINI_BASE_URL="http://127.0.0.1:%d" % self.port, GEMINI_CLI_TRUST_WORKSPACE="true")
        settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False}, "general": {"disableAutoUpdate": True}}
        (self.root / "settings.json").write_text(json.dumps(settings))

    def begin(self, prompt):
        self.run("-m", "gemini-2.5-flash", "-y", "-p", prompt)

    def resume(self, prompt):
        time.sleep(SECONDS_OF_MINUTE)
        self.run("-m", "gemini-2.5-flash", "-y", "--resume", "latest", "-p", prompt)

    def talk(self):
        self.begin("U01 question")
        self.resume("U02 call")


class Qwen(Client):
    name, package, program, home, needs_node_22 = "qwen", "@qwen-code/qwen-code", "qwen", ".qwen", True

    def configure(self):
        self.environment.update(OPENAI_API_KEY="x", OPENAI_BASE_URL="http://127.0.0.1:%d/v1" % self.port, OPENAI_MODEL="mock-model")
        settings = {"security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": False}, "general": {"disableAutoUpdate": True}}
        (self.root / "settings.json").write_text(json.dumps(settings))

    def begin(self, prompt):
        self.run("-y", "-p", prompt)

    def resume(self, prompt):
        self.run("-y", "--continue", "-p", prompt)


class Pi(Client):
    name, package, program, home, needs_node_22 = "pi", "@mariozechner/pi-coding-agent", "pi", ".pi/agent", True

    def configure(self):
        model = {"id": "mock-model", "name": "mock-model", "reasoning": False, "input": ["text"], "contextWindow": 100000, "maxTokens": 1000,
                 "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}
        provider = {"baseUrl": "http://127.0.0.1:%d/v1" % self.port, "api": "openai-completions", "apiKey": "x", "models": [model]}
        (self.root / "models.json").write_text(json.dumps({"providers": {"mock": provider}}))
        self.environment.update(PI_CODING_AGENT_DIR=str(self.root), PI_OFFLINE="1", PI_SKIP_VERSION_CHECK="1")

    def begin(self, prompt, *more):
        self.run("--provider", "mock", "--model", "mock-model", *more, "-p", prompt)

    def resume(self, prompt):
        self.begin(prompt, "--continue")


class OpenCode(Client):
    name, package, program, home = "opencode", "opencode-ai", "opencode", ".local/share/opencode"

    def configure(self):
        model = {"name": "mock-model", "tool_call": True, "limit": {"context": 100000, "output": 1000}}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "mock", "options": {"baseURL": "http://127.0.0.1:%d/v1" % self.port, "apiKey": "x"}, "models": {"mock-model": model}}
        settings = {"provider": {"mock": provider}, "model": "mock/mock-model", "small_model": "mock/mock-model", "autoupdate": False, "share": "disabled", "permission": "allow"}
        (self.cwd / "opencode.json").write_text(json.dumps(settings))
        self.environment.update(OPENCODE_DISABLE_AUTOUPDATE="1", OPENCODE_DISABLE_MODELS_FETCH="1", OPENCODE_DISABLE_DEFAULT_PLUGINS="1", OPENCODE_DISABLE_LSP_DOWNLOAD="1")

    def begin(self, prompt, *more):
        self.run("run", *more, prompt)

    def resume(self, prompt):
        self.begin(prompt, "--continue")

    def scenarios(self):
        return {"talk": self.talk, "fork": self.fork}

    def fork(self):
        self.begin("U01 question")
        self.resume("U02 call")
        self.begin("U03 question", "--continue", "--fork")


class Copilot(Client):
    name, package, program, home, needs_node_22 = "copilot", "@github/copilot", "copilot", ".copilot", True

    def configure(self):
        self.environment.update(COPILOT_PROVIDER_TYPE="openai", COPILOT_PROVIDER_BASE_URL="http://127.0.0.1:%d/v1" % self.port, COPILOT_PROVIDER_API_KEY="x",
                                COPILOT_MODEL="mock-model", COPILOT_OFFLINE="true", COPILOT_AUTO_UPDATE="false")

    def begin(self, prompt, *more):
        self.run("--allow-all-tools", "--no-color", *more, "-p", prompt)

    def resume(self, prompt):
        self.begin(prompt, "--continue")


CLIENTS = {client.name: client for client in (Codex, ClaudeCode, Gemini, Qwen, Pi, OpenCode, Copilot)}


def install(clients, name, version):
    """installs a client; returns what is wrong, or nothing"""
    wanted = [(clients / name, "%s@%s" % (CLIENTS[name].package, version))]
    if CLIENTS[name].needs_node_22 and not (clients / "node").exists():
        wanted.append((clients / "node", "node@22"))
    for folder, package in wanted:
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--no-save", "--loglevel", "error", package]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return done.stderr.strip().splitlines()[-1:] or ["npm exits with %d" % done.returncode]
    return None


def version_of(clients, name):
    path = clients / name / "node_modules" / CLIENTS[name].package / "package.json"
    return json.loads(path.read_text())["version"] if path.exists() else None


class Reader:
    """transcript, reading the sessions of one client"""

    def __init__(self, transcript, client, root):
        self.transcript, self.agent, self.root = str(transcript), client, str(root)

    def run(self, *arguments):
        command = [self.transcript, *arguments, "--agent", self.agent, "--root", self.root]
        return subprocess.run(command, capture_output=True, text=True)

    def sessions(self):
        done = self.run("list", "--json")
        if done.returncode:
            raise RuntimeError("list: %.300s" % done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def newest(self):
        sessions = [session for session in self.sessions() if session.get("kind") == "session"]
        if not sessions:
            raise RuntimeError("transcript lists no session")
        return max(sessions, key=lambda session: session["modified"] or "")["sessionId"]

    def items(self, session):
        done = self.run("replay", "--format", "items", session)
        if done.returncode:
            raise RuntimeError("replay: %.300s" % done.stderr)
        return json.loads(done.stdout)

    def damage(self, session):
        return [line for line in self.run("verify", session).stdout.splitlines() if "imported" in line]


def told(items):
    """the items with a marker, as far as all protocols have them"""
    for item in items:
        text = item.get("text") or item.get("output") or json.dumps(item.get("input"))
        if MARK.search(text) and item["kind"] not in ("system", "developer", "context", "reasoning"):
            kind = "user" if item["kind"] == "summary" else item["kind"]
            yield (kind, text.strip() if kind != "tool_call" else json.dumps(item.get("input"), sort_keys=True))


def difference(read, sent):
    read, sent = list(told(read)), list(told(sent))
    if read == sent:
        return None
    # Blocks of one message are one text in some protocols, and the other way round.
    marks = lambda items: [(kind, re.findall(MARK, text)) for kind, text in items]
    if marks(read) == marks(sent) and all(one in other or other in one for (_, one), (_, other) in zip(read, sent)):
        return None
    at = next((at for at, pair in enumerate(zip(read, sent)) if pair[0] != pair[1]), min(len(read), len(sent)))
    return "item %d of %d and %d: read %.200s, sent %.200s" % (at, len(read), len(sent), read[at : at + 1], sent[at : at + 1])


def sent_before(model, start, prompt):
    """the items of the first request with the prompt, up to it"""
    for items in model.items[start:]:
        for at, item in enumerate(items):
            if item["kind"] == "user" and re.search(r"\b%s\b" % prompt, item["text"]) and not any(MARK.search(later.get("text", "")) for later in items[at + 1 :]):
                before = items[:at]
                # A prompt may stand behind an older one in one message.
                rest = item["text"].split(prompt)[0]
                return before + ([{**item, "text": rest}] if MARK.search(rest) else [])
    raise RuntimeError("no request has the prompt %s" % prompt)


def check(options, name, scenario):
    """what differs in a scenario, or nothing"""
    with tempfile.TemporaryDirectory() as folder, ScriptedModel(delay=0.05 if options.live else 0) as model:
        client = CLIENTS[name](options.clients, pathlib.Path(folder).resolve(), model.port)
        reader = Reader(options.transcript, name, client.root)
        act = client.scenarios()[scenario]
        if options.live:
            return live(client, reader, act)
        act()
        session = client.session() if hasattr(client, "session") else reader.newest()
        copy = pathlib.Path(folder) / "before"
        shutil.copytree(client.root, copy, symlinks=True, ignore_dangling_symlinks=True, ignore=shutil.ignore_patterns("*.sock", "*.lock"), copy_function=copy_if_there)
        read = Reader(options.transcript, name, copy).items(session)
        start = len(model.items)
        client.resume("U09 next")
        return difference(read["live"], sent_before(model, start, "U09"))


def copy_if_there(source, target):
    """A server that ends removes the side files of its databases."""
    try:
        shutil.copy2(source, target)
    except FileNotFoundError:
        pass


def live(client, reader, act):
    """reads the session while it is written"""
    failed, states, damage = [], [], []

    def write():
        try:
            act()
        except Exception as error:
            failed.append(repr(error))

    writer = threading.Thread(target=write)
    writer.start()
    session = None
    while writer.is_alive():
        try:
            session = session or (client.session() if getattr(client, "thread", None) else reader.newest())
            states.append(list(told(reader.items(session)["live"])))
            damage += reader.damage(session)
        except (RuntimeError, AttributeError) as error:
            # Before the first record there is no session.
            if states:
                failed.append(repr(error))
        time.sleep(0.1)
    writer.join()
    if failed:
        return failed[0]
    last = list(told(reader.items(session)["live"]))
    for state in states:
        begun = state and state[-1] not in last and any(text.startswith(state[-1][1]) for _, text in last)
        if last[: len(state)] != state and not (begun and last[: len(state) - 1] == state[:-1]):
            return "%s is not the beginning of %s" % (state, last)
    if damage:
        return "damage: %s" % damage[0]
    different = len({json.dumps(state) for state in states})
    return None if different > 2 else "only %d states were seen" % different


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("client", nargs="*", help="one of %s, and after = its version" % ", ".join(CLIENTS))
    parser.add_argument("--clients", required=True, type=lambda path: pathlib.Path(path).resolve(), metavar="DIR")
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--live", action="store_true")
    parser.add_argument("--transcript", default=ROOT / "target/release/transcript")
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    wanted = dict((client.split("=") + ["latest"])[:2] for client in options.client or CLIENTS)
    if options.install:
        for name, version in wanted.items():
            wrong = install(options.clients, name, version)
            print(name, version_of(options.clients, name) if not wrong else "cannot be installed: %s" % wrong[0], flush=True)
        return 0
    drifts = 0
    for name in wanted:
        version = version_of(options.clients, name)
        if version is None:
            print("%-12s skipped: it is not installed" % name)
            continue
        # Only the first scenario makes no boundary, so that what is live only grows.
        scenarios = ["talk"] if options.live else CLIENTS[name].scenarios(CLIENTS[name].__new__(CLIENTS[name]))
        for scenario in scenarios:
            try:
                drift = check(options, name, scenario)
            except (RuntimeError, OSError, KeyError, subprocess.SubprocessError) as error:
                drift = repr(error)
            drifts += drift is not None
            print("%-12s %-10s %-8s %s" % (name, version, scenario, drift or "the same"), flush=True)
    return int(drifts > 0)


if __name__ == "__main__":
    sys.exit(main())
