#!/usr/bin/env python3
"""experiments/handover_commands.py TRANSCRIPT SHARED [--claude N] [--agents NAME,…] [--codex PROGRAM] [--claude-code PROGRAM] [--limit N] [-v]

Hands every session of other agents in SHARED/import, and N sessions of Claude Code in SHARED/oracle* (drawn with a fixed seed), over to Codex and to Claude Code with the
command TRANSCRIPT (`resume --to --write --json`), reads the new session back with `replay --format items`, and compares: the items are those of the source, but for what the
report lists. With --codex and --claude-code the clients are asked, too: the next request must have the items (`handover_clients.py` is the rig; run it without a network).
Prints what differs and the figures, and exits with 1 if something differs."""
import argparse, collections, glob, json, os, pathlib, random, shutil, subprocess, sys, tempfile

import handover_clients as clients

TARGETS = ["codex", "claude-code"]
AGENTS = ["codex", "gemini", "opencode", "pi", "qwen", "copilot"]
SEED = 20261128
# By whose words a session is refused: it has no conversation, or nothing that the target can hold.
NOTHING = ("not-resumable",)


class Refused(Exception):
    pass


def run(program, home, *words):
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(home / "cache"), "TZ": "UTC"}
    done = subprocess.run([program, *map(str, words)], env=environment, capture_output=True, text=True, cwd=home)
    if done.returncode:
        try:
            error = json.loads(done.stderr.splitlines()[-1])["error"]
        except (ValueError, IndexError, KeyError):
            raise RuntimeError("exit %d: %.300s" % (done.returncode, done.stderr)) from None
        if error["kind"] in NOTHING:
            raise Refused(error["message"])
        raise RuntimeError("%(kind)s: %(message)s" % error)
    return json.loads(done.stdout.splitlines()[-1])


def other_sessions(shared, scratch, agents):
    """each session of other agents: a name, and the words that name it to the command"""
    for agent in agents:
        for file in sorted(glob.glob(f"{shared}/import/{agent}/*/expected*.json")):
            expected, store = json.loads(pathlib.Path(file).read_text()), pathlib.Path(file).parent / "store"
            if not store.is_dir():
                continue
            if agent == "opencode":
                store = unpacked(store, scratch / pathlib.Path(file).parent.name)
            for session in expected["sessions"]:
                yield "%s/%s/%s" % (agent, expected["case"], session["id"]), ["--agent", agent, "--root", store, session["id"]]


def unpacked(store, folder):
    if not folder.exists():
        shutil.copytree(store, folder)
        for file in folder.rglob("*.zst"):
            subprocess.run(["zstd", "-q", "-d", "-f", file, "-o", file.with_suffix("")], check=True)
    return folder


def claude_sessions(shared, count):
    files = sorted(path for set in ("oracle", "oracle2", "oracle3") for path in glob.glob(f"{shared}/{set}/*/input.jsonl"))
    for file in sorted(random.Random(SEED).sample(files, min(count, len(files)))):
        yield "claude-code/" + "/".join(pathlib.Path(file).parts[-3:-1]), [file]


def same(items, report, target):
    """the items that arrive by the report, in a form that can be compared"""
    prompts = {entry["item"] for entry in report["changed"] if entry["change"] == "promptOfAgent"}
    items = [{**item, "kind": "user"} if number in prompts else item for number, item in enumerate(items)]
    wanted = clients.with_moves(list(clients.expected(items, report)), items, report)
    return list(clients.with_additions(wanted, report)) if target == "claude-code" else wanted


def arrived(items, report, target):
    """the items of the new session, without what the report says is added"""
    own = {"counts": {}, "omitted": [], "changed": [], "added": []}
    got = list(clients.expected(items, own))
    added = {entry["item"] for entry in report["added"] if entry["what"] == "result"}
    return list(clients.with_additions(got, {"added": []})) if target == "claude-code" else got, added


def without_parts(output):
    """the text of a result without the JSON of the parts that the report says are text now: such as references to tools"""
    def is_part(line):
        try:
            return json.loads(line).get("type") not in (None, "text", "image")
        except (ValueError, AttributeError):
            return False
    return "\n".join(line for line in output.split("\n") if not is_part(line))


def compare(wanted, got, given, report):
    """says what differs"""
    parts = {given[entry["item"]].get("callId") for entry in report["changed"] if entry["change"] == "partsAsText"}
    calls = {given[entry["item"]].get("callId") for entry in report["added"] if entry["what"] == "result"}
    renamed = {entry["from"]: entry["to"] for entry in report["changed"] if entry["change"] == "callId"}
    calls, parts = ({renamed.get(call, call) for call in some} for some in (calls, parts))
    got = [{**item, "output": without_parts(item["output"])} if item.get("callId") in parts and "output" in item else item for item in got]
    answered = {item["callId"] for item in wanted if item["kind"] == "tool_result"}
    got = [item for item in got if not (item["kind"] == "tool_result" and item["callId"] in calls - answered)]
    # Messages without a text stand for images beside them.
    plain = lambda items: [item for item in items if item.get("text") != "" or item["kind"] not in ("user",)]
    wanted, got = plain(wanted), plain(got)
    for number in range(max(len(wanted), len(got))):
        pair = [items[number] if number < len(items) else None for items in (wanted, got)]
        if pair[0] != pair[1]:
            return "item %d: expected %.300s, got %.300s" % (number, *map(json.dumps, pair))


def hand_over(options, words, target, folder):
    """what differs in a session that is handed over, or nothing; and its record"""
    person, home, cwd = folder / "person", folder / "home", folder / "work"
    for path in (person, home, cwd):
        path.mkdir()
    before = sorted(home.rglob("*"))
    try:
        given = run(options.transcript, person, "replay", "--format", "items", *words)["live"]
        written = run(options.transcript, person, "resume", "--to", target, "--write", "--json", "--target-home", home, "--cwd", cwd, *words)
    except Refused:
        assert sorted(home.rglob("*")) == before
        raise
    back = ["--agent", "codex", "--root", home] if target == "codex" else ["--root", home / "projects"]
    got = run(options.transcript, person, "replay", "--format", "items", *back, written["sessionId"])["live"]
    report = written["report"]
    got, _ = arrived(got, report, target)
    wrong = compare(same(given, report, target), got, given, report)
    program = options.codex if target == "codex" else options.claude_code
    if not wrong and program:
        wrong = ask(program, target, home, cwd, given, written)
    return wrong, written


def ask(program, target, home, cwd, given, written):
    """says what differs in the next request of the client"""
    with clients.ScriptedModel(fixed="answer") as model:
        if target == "codex":
            (home / "config.toml").write_text(clients.config(model.port))
            wrong = clients.ask_codex(program, home, cwd, written, written["title"])
        else:
            wrong = clients.ask_claude_code(program, home, cwd, written, model.port)
    if wrong:
        return "the client: " + wrong
    key, take = ("input", clients.sent) if target == "codex" else ("messages", clients.sent_by_claude_code)
    requests = [request for request in model.requests if clients.PROMPT in json.dumps(request.get(key, []))]
    got, report = take(requests[0]), written["report"]
    if target == "claude-code":
        images = sum(item["kind"] == "image" for item in got)
        if images != prompt_images(given, report):
            return "the client: %d images of prompts, not %d" % (images, prompt_images(given, report))
        got = [item for item in clients.with_additions(got, {"added": []}) if item["kind"] != "image"]
    wrong = compare(same(given, report, target), got, given, report)
    return wrong and "the client: " + wrong


def prompt_images(items, report):
    """the number of images of prompts that are written: blocks of their own in a request of Claude Code"""
    omitted = {entry["item"] for entry in report["omitted"]}
    lost = {entry["item"]: entry["images"] for entry in report["changed"] if entry["change"] == "imagesOmitted"}
    images = [(number, item.get("images", 0)) for number, item in enumerate(items) if item["kind"] in ("user", "context")]
    return sum(count - lost.get(number, 0) for number, count in images if number not in omitted)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("transcript")
    parser.add_argument("shared")
    parser.add_argument("--claude", type=int, default=250)
    parser.add_argument("--agents", default=",".join(AGENTS), help="the agents in SHARED/import")
    parser.add_argument("--codex")
    parser.add_argument("--claude-code")
    parser.add_argument("--limit", type=int)
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    options.transcript = os.path.abspath(options.transcript)
    different, figures, lost = 0, collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch).resolve()
        sessions = list(other_sessions(options.shared, scratch, options.agents.split(","))) + list(claude_sessions(options.shared, options.claude))
        if options.limit:
            sessions = random.Random(SEED).sample(sessions, min(options.limit, len(sessions)))
        for number, (name, words) in enumerate(sessions):
            for target in TARGETS:
                folder = scratch / ("%d-%s" % (number, target))
                folder.mkdir()
                agent = name.split("/")[0]
                try:
                    wrong, written = hand_over(options, words, target, folder)
                except Refused as refusal:
                    figures[agent, target, "refused"] += 1
                    if options.v:
                        print(name, target, "refused:", refusal, flush=True)
                    continue
                except (RuntimeError, StopIteration, subprocess.SubprocessError) as error:
                    wrong, written = repr(error), None
                finally:
                    shutil.rmtree(folder, ignore_errors=True)
                figures[agent, target, "different" if wrong else "the same"] += 1
                different += wrong is not None
                if written:
                    lost.update({(target, what): count for what, count in written["report"]["counts"].items()})
                if wrong:
                    print(name, target, wrong, flush=True)
    for (agent, target, what), count in sorted(figures.items()):
        print("%-12s to %-12s %4d %s" % (agent, target, count, what))
    for (target, what), count in sorted(lost.items()):
        print("%-12s %5d %s" % (target, count, what))
    return different > 0


if __name__ == "__main__":
    sys.exit(main())
