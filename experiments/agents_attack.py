#!/usr/bin/env python3
"""experiments/agents_attack.py [--transcript PATH] [-v] [CASE ...]

Makes home folders of other agents that somebody could make to stop a reader: pipes and circles of links among the files, names that are not UTF-8, ids that are paths, titles with
escapes, values that are nested 100,000 times, a line of 1 GB, compressed zeros, numbers without an end, chains in a circle, databases with views that never end, files that change
while they are read. Reads each with every reading command of `target/debug/transcript`, and says which panics, takes more than a minute or more than 1 GiB, writes an escape to the
terminal, or lists fewer sessions than there are. Exits with 1 then."""
import argparse, json, os, pathlib, resource, signal, sqlite3, subprocess, sys, tempfile, threading

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_SECONDS, MAX_MEMORY = 60, 1 << 30
ID = "01a2108c-c6bc-7796-9e88-f2557a60af%02x"


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def codex(thread, *texts, title=None, base=None):
    said = [{"timestamp": "2026-01-01T00:00:00Z", "ordinal": at + 1, "type": "response_item", "payload": {"type": "message", "role": "user", "content": text}} for at, text in enumerate(texts)]
    return lines({"timestamp": "2026-01-01T00:00:00Z", "ordinal": 0, "type": "session_meta", "payload": {"id": thread, "cwd": "/w", "timestamp": "2026-01-01T00:00:00Z", "history_base": base}}, *said)


def pi(session, *texts, title=None):
    said = [{"type": "message", "id": "m%d" % at, "parentId": "m%d" % (at - 1) if at else None, "timestamp": "2026-01-01T00:00:00Z", "message": {"role": "user", "content": text}} for at, text in enumerate(texts)]
    named = [{"type": "session_info", "id": "t", "parentId": "m%d" % (len(texts) - 1), "timestamp": "2026-01-01T00:00:00Z", "name": title}] if title else []
    return lines({"type": "session", "id": session, "cwd": "/w", "timestamp": "2026-01-01T00:00:00Z"}, *said, *named)


def qwen(session, *texts, title=None):
    said = [{"uuid": "m%d" % at, "parentUuid": "m%d" % (at - 1) if at else None, "sessionId": session, "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w", "type": "user", "message": {"role": "user", "parts": [{"text": text}]}} for at, text in enumerate(texts)]
    return lines(*said)


def gemini(session, *texts, title=None):
    said = [{"id": "m%d" % at, "timestamp": "2026-01-01T00:00:00Z", "type": "user", "content": text} for at, text in enumerate(texts)]
    named = [{"$set": {"summary": title}}] if title else []
    return lines({"sessionId": session, "projectHash": "h", "startTime": "2026-01-01T00:00:00Z", "lastUpdated": "2026-01-01T00:00:00Z"}, *said, *named)


def copilot(session, *texts, title=None):
    said = [{"type": "user.message", "id": "m%d" % at, "timestamp": "2026-01-01T00:00:00Z", "data": {"content": text}} for at, text in enumerate(texts)]
    return lines({"type": "session.start", "id": "s", "timestamp": "2026-01-01T00:00:00Z", "data": {"sessionId": session, "context": {"cwd": "/w"}}}, *said)


# The bytes of a session, the folder of its file, and the name of the file.
MAKERS = {
    "codex": (codex, lambda n: "sessions/2026/01/01", lambda id: "rollout-2026-01-01T00-00-00-%s.jsonl" % id),
    "pi": (pi, lambda n: "sessions/--w--", lambda id: "2026_%s.jsonl" % id),
    "qwen": (qwen, lambda n: "projects/w/chats", lambda id: "%s.jsonl" % id),
    "gemini": (gemini, lambda n: "tmp/w/chats", lambda id: "session-2026-01-01T00-00-%s.jsonl" % id[-8:]),
    "copilot": (copilot, lambda n: "session-state/s%d" % n, lambda id: "events.jsonl"),
}
SCHEMA = """CREATE TABLE session (id text PRIMARY KEY, title text, directory text, version text, model text, revert text, parent_id text, time_created integer, time_updated integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer, data text);
CREATE TABLE event (id text PRIMARY KEY, aggregate_id text, seq integer, type text, data text);
INSERT INTO session VALUES ('ses_1', 'a title', '/w', '1', NULL, NULL, NULL, 1, 1);
INSERT INTO message VALUES ('msg_1', 'ses_1', 1, 1, '{"role":"user"}');
INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses_1', 1, 1, '{"type":"text","text":"one"}');
"""
ENDLESS = "AS WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT %s FROM x;"


def put(home, agent, number=0, *texts, id=None, name=None, title=None):
    """writes a session; returns its file"""
    make, folder, named = MAKERS[agent]
    id = id or ID % number
    folder = home / folder(number)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (name or named(ID % number))
    path.write_bytes(make(id, *(texts or ("one", "two")), title=title))
    return path


def database(home, more="", name="opencode.db"):
    home.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(home / name) as connection:
        connection.executescript(SCHEMA + more)
    connection.close()
    return 1


def everywhere(make):
    """a case for each agent with files of lines"""
    return lambda home, agent: make(home, agent)


def pipe(home, agent):
    path = put(home, agent)
    os.mkfifo(path.parent / ("pipe-" + path.name if agent != "copilot" else "pipe.jsonl"))
    return 1


def side_pipes(home, agent):
    path = put(home, agent)
    beside = {"codex": home / "session_index.jsonl", "copilot": path.parent / "workspace.yaml", "gemini": path.parent.parent / ".project_root"}.get(agent)
    if beside:
        os.mkfifo(beside)
    if agent == "copilot":
        os.mkfifo(home / "session-store.db")
    return 1


def links(home, agent):
    path = put(home, agent)
    os.symlink("..", path.parent / "up")
    os.symlink(path.parent, path.parent / "self")
    os.symlink("loop", path.parent / "loop")
    os.symlink("/nowhere", path.parent / "nowhere.jsonl")
    return 1


def bytes_in_names(home, agent):
    path = put(home, agent)
    folder = os.fsencode(path.parent)
    for name in (b"\xff\xfe-" + os.fsencode(path.name), b"\xfe\xff-" + os.fsencode(path.name)):
        if agent != "copilot":
            with open(os.path.join(folder, name), "wb") as file:
                file.write(MAKERS[agent][0](ID % (name[0]), "of bytes"))
    return 1 if agent == "copilot" else 3


def same_ids(home, agent):
    for number, name in enumerate(("a", "b", "c")):
        path = put(home, agent, number, "text %s" % name, id=ID % 0)
    # Codex and Gemini CLI continue a session in other files.
    return 1 if agent in ("codex", "gemini") else 3


def strange_ids(home, agent):
    ids = ["../../../etc/passwd", "/etc/passwd", "..", "", "a\nb", "\x1b[31mred", "x" * 5000, "agent-1", "CON", "a\\b"]
    for number, id in enumerate(ids):
        put(home, agent, number, id=id)
    return len(ids) - (1 if agent in () else 0)


def titles(home, agent):
    put(home, agent, 0, "\x1b]0;title\x07\x1b[31mred\x9b31m\u202e", title="\x1b]0;title\x07\x1b[2J\u202e")
    return 1


def deep(home, agent):
    path = put(home, agent)
    text = path.read_text()
    nested = "[" * 100_000 + "]" * 100_000
    path.write_text(text + text.splitlines()[-1].replace('"two"', nested) + "\n" + '{"a":' * 100_000 + "\n")
    return 1


def long_line(home, agent):
    path = put(home, agent)
    with open(path, "r+b") as file:
        file.truncate(1 << 30)
    return 1


def numbers(home, agent):
    path = put(home, agent)
    text = path.read_text()
    for huge in ("1e999", "18446744073709551615", "-1", "99999999999999999999999"):
        text += text.splitlines()[1].replace('"2026-01-01T00:00:00Z"', huge).replace('"ordinal": 1', '"ordinal": ' + huge) + "\n"
    for time in ("9999999-99-99T99:99:99Z", "-0001-01-01T00:00:00Z", "9999-12-31T23:59:60Z", "\u0000"):
        text += text.splitlines()[1].replace("2026-01-01T00:00:00Z", json.dumps(time)[1:-1]) + "\n"
    usage = {"input_tokens": 2**64 - 1, "output_tokens": 2**64 - 1}
    text += json.dumps({"timestamp": "t", "type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": usage}}}) + "\n"
    path.write_text(text)
    return 1


def folders(home, agent):
    path = put(home, agent)
    if agent != "copilot":
        (path.parent / ("dir-" + path.name)).mkdir()
    return 1


def empty(home, agent):
    home.mkdir()
    return 0


def only_folders(home, agent):
    put(home, agent).unlink()
    return 0


def changing(home, agent):
    path = put(home, agent)
    done = threading.Event()

    def change():
        long = [MAKERS[agent][0](ID % 0, *["%d " % at * size for at in range(50)]) for size in (5, 500)]
        while not done.is_set():
            for text in long:
                path.write_bytes(text)

    threading.Thread(target=change, daemon=True).start()
    return 1, done.set


def circle(home, agent):
    folder = home / "sessions"
    folder.mkdir(parents=True)
    for own, other in ((0, 1), (1, 0), (2, 2)):
        base = {"thread_id": ID % other, "end_ordinal_exclusive": 2**64 - 1}
        (folder / ("rollout-x-%s.jsonl" % (ID % own))).write_bytes(codex(ID % own, "one", base=base))
    return 3


def compressed(home, agent):
    folder = home / "sessions"
    folder.mkdir(parents=True)
    path = folder / ("rollout-x-%s.jsonl.zst" % (ID % 0))
    head = subprocess.run(["zstd", "-c"], input=codex(ID % 0, "one"), capture_output=True, check=True).stdout
    zeros = subprocess.run("head -c 1073741824 /dev/zero | zstd -19 -c", shell=True, capture_output=True, check=True).stdout
    path.write_bytes(head + zeros * 20)
    return 1


def many(home, agent):
    for number in range(3000):
        path = put(home, agent, number)
    return 3000


def views(home, agent):
    database(home, "DROP TABLE event; CREATE VIEW event " + ENDLESS % "n AS id, 'ses_1' AS aggregate_id, n AS seq, 'x' AS type, '{}' AS data" + "CREATE VIEW other " + ENDLESS % "'ses_1' AS session_id")
    return 1


def view_of_sessions(home, agent):
    database(home, "DROP TABLE session; CREATE VIEW session " + ENDLESS % "n AS id, n AS time_created")
    return 0


def virtual(home, agent):
    try:
        database(home, "CREATE VIRTUAL TABLE notes USING fts5(session_id, text); INSERT INTO notes VALUES ('ses_1', 'x');")
    except sqlite3.OperationalError:
        pass
    return 1


def computed(home, agent):
    return database(home, "CREATE TABLE big (session_id text); INSERT INTO big VALUES ('ses_1'); ALTER TABLE big ADD COLUMN text text AS (hex(zeroblob(400000000)));")


def types(home, agent):
    return database(home, "UPDATE message SET time_created = 'abc'; UPDATE part SET data = x'ff00', time_created = 1.5; UPDATE session SET title = 5, time_created = x'00';")


def triggers(home, agent):
    return database(home, "CREATE TRIGGER t AFTER INSERT ON part BEGIN DELETE FROM session; END; CREATE TABLE \"a\"\"b;--\" (session_id text); INSERT INTO \"a\"\"b;--\" VALUES ('ses_1');")


def no_database(home, agent):
    home.mkdir()
    (home / "opencode.db").write_bytes(b"SQLite format 3\0" + os.urandom(100_000))
    return 0


def database_pipes(home, agent):
    database(home)
    os.mkfifo(home / "opencode-beta.db")
    os.mkfifo(home / "opencode.db-wal")
    return 1


LINES = {"pipe": pipe, "side-pipes": side_pipes, "links": links, "bytes-in-names": bytes_in_names, "same-ids": same_ids, "strange-ids": strange_ids, "titles": titles, "deep": deep,
         "long-line": long_line, "numbers": numbers, "folders": folders, "empty": empty, "only-folders": only_folders, "changing": changing}
CASES = {"%s/%s" % (agent, name): (agent, make) for agent in MAKERS for name, make in LINES.items()}
CASES |= {"codex/circle": ("codex", circle), "codex/compressed": ("codex", compressed), "codex/many": ("codex", many), "pi/many": ("pi", many), "gemini/many": ("gemini", many)}
CASES |= {"opencode/" + make.__name__: ("opencode", make) for make in (views, view_of_sessions, virtual, computed, types, triggers, no_database, database_pipes, empty)}


def run(command):
    """runs a command; returns its exit, output, errors, seconds and memory"""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    timer = threading.Timer(MAX_SECONDS, lambda: os.killpg(process.pid, signal.SIGKILL))
    timer.start()
    out, errors = process.communicate()
    is_late = not timer.is_alive()
    timer.cancel()
    return process.returncode, out, errors, is_late


def check(transcript, name, folder):
    """says what is wrong in a case"""
    agent, make = CASES[name]
    home = folder / "home"
    expected = make(home, agent)
    expected, stop = expected if isinstance(expected, tuple) else (expected, lambda: None)
    where = ["--agent", agent, "--root", str(home)]
    code, out, errors, _ = run([transcript, "list", "--json", "--all", *where])
    if code == 2:
        code, out, errors, _ = run([transcript, "list", "--json", *where])
    listed = [json.loads(line) for line in out.splitlines() if line.startswith(b"{")]
    sessions = [one for one in listed if one.get("kind") == "session"]
    if len(sessions) < expected:
        yield "list: %d of %d sessions; %.200s" % (len(sessions), expected, errors.decode(errors="replace"))
    ids = [session["sessionId"] for session in sessions][:4]
    commands = [["list"], ["search", "one"], ["usage"]]
    commands += [[verb, id] for id in ids for verb in ("replay", "verify", "tree")] + [["replay", "--format", "items", id] for id in ids] + [["export", "--html", str(folder / "page.html"), id] for id in ids[:1]]
    for command in commands:
        if command[0] == "export" and os.path.exists(folder / "page.html"):
            os.remove(folder / "page.html")
        code, out, errors, is_late = run([transcript, *command, *where])
        shown = " ".join(command)[:80]
        if is_late:
            yield "%s: more than %d seconds" % (shown, MAX_SECONDS)
        elif code not in (0, 1, 2, 3) or b"panicked" in errors:
            yield "%s: exits with %d: %.300s" % (shown, code, errors.decode(errors="replace"))
        if command[0] != "replay" or command[1] != "--format":
            text = out + errors
            if b"\x1b]0" in text or b"\x1b[2J" in text or b"\x1b[31mred" in text or "\u202e".encode() in text:
                yield "%s: writes an escape" % shown
        if code and not errors.strip() and not out.strip():
            yield "%s: exits with %d and says nothing" % (shown, code)
    stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="*", help="such as codex/pipe, or its beginning")
    parser.add_argument("--transcript", default=ROOT / "target/debug/transcript")
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    wrong = 0
    for name in CASES:
        if options.case and not any(name.startswith(case) for case in options.case):
            continue
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        with tempfile.TemporaryDirectory() as folder:
            found = list(check(str(options.transcript), name, pathlib.Path(folder)))
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        # Only a new peak can be seen.
        if peak > before and peak << 10 > MAX_MEMORY:
            found.append("%d MiB" % (peak >> 10))
        wrong += len(found)
        if found or options.v:
            print(name, *(found or ["fine"]), sep="\n  ", flush=True)
    print("%d things are wrong" % wrong)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
