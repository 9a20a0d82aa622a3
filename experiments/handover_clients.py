#!/usr/bin/env python3
"""experiments/handover_clients.py codex|claude-code PROGRAM CASES.jsonl.zst [--example EXAMPLE] [--limit N] [-v]

Hands conversations over to a client and asks the client itself what it makes of them. PROGRAM is the client, CASES has one conversation a line (`items`), EXAMPLE is
`target/debug/examples/handover` by default (`cargo build -p transcript-import --example handover`). For each conversation: a new home folder, the hand-over, then the
client continues the session (Codex through its app server, which must list the thread with its title; Claude Code with `--print --resume`). A scripted server on this
machine takes the request. The request must have the items that were handed over, but for what the report lists. Prints what differs, and exits with 1 then. Run it
without a network, such as in `unshare -rn sh -c 'ip link set lo up; …'`."""
import argparse, json, os, pathlib, subprocess, sys, tempfile

from agent_clients import AppServer, ScriptedModel, TIMEOUT, blocks_of, config, item_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROMPT = "the next prompt"


def expected(items, report):
    """the items that arrive, by the report: those that are not omitted, under their new ids and names"""
    omitted = {entry["item"] for entry in report["omitted"]}
    renamed = {(entry["item"], entry["change"]): entry["to"] for entry in report["changed"] if "to" in entry}
    wrapped = {entry["item"] for entry in report["changed"] if entry["change"] == "inputWrapped"}
    for number, item in enumerate(items):
        if number in omitted:
            continue
        call = renamed.get((number, "callId"), item.get("callId"))
        if item["kind"] == "tool_call":
            value = {"input": item["input"]} if number in wrapped else item["input"]
            yield {"kind": "tool_call", "name": renamed.get((number, "toolName"), item.get("name")), "callId": call, "input": value}
        elif item["kind"] == "tool_result":
            yield {"kind": "tool_result", "callId": call, "output": item.get("output", "")}
        else:
            yield {"kind": "user" if item["kind"] == "summary" else item["kind"], "text": item.get("text", "")}


def sent(request):
    """the items of a request up to the next prompt, without those that Codex adds"""
    items = [item_of(item) for item in request["input"]]
    items = items[: next(number for number, item in enumerate(items) if item.get("text") == PROMPT)]
    is_added = lambda item: item["kind"] == "developer" or item["kind"] == "user" and item["text"].startswith(("<environment_context>", "<skills_instructions>"))
    return [item for item in items if not is_added(item)]


def sent_by_claude_code(request):
    """the blocks of a request up to the next prompt, without those that Claude Code adds"""
    items = [item for item in blocks_of(request) if not item.get("text", "").startswith("<system-reminder>")]
    return items[: next(number for number, item in enumerate(items) if item.get("text") == PROMPT)]


def with_moves(items, given, report):
    """the items with the results that moved behind the response with their call, and its other results"""
    moved = {given[entry["item"]]["callId"] for entry in report["changed"] if entry["change"] == "resultMoved"}
    results = [item for item in items if item["kind"] == "tool_result" and item["callId"] in moved]
    items = [item for item in items if item not in results]
    for result in results:
        place = next(number for number, item in enumerate(items) if item["kind"] == "tool_call" and item["callId"] == result["callId"])
        while place + 1 < len(items) and items[place + 1]["kind"] in ("tool_call", "tool_result"):
            place += 1
        items.insert(place + 1, result)
    return items


def with_additions(items, report):
    """the items with what the report says Claude Code gets or adds"""
    added = {entry["what"] for entry in report["added"]}
    first = [{"kind": "user", "text": "(no content)"}] if "prompt" in added else []
    last = [{"kind": "assistant", "text": "No response requested."}] if "answer" in added else []
    # Blocks of one message are separated by a line feed.
    for item in first + items + last:
        yield {**item, "text": item["text"].rstrip("\n")} if item["kind"] == "user" else item


def ask_codex(program, home, cwd, written, title):
    """the request of Codex, or what is wrong with its list"""
    with AppServer(program, home, cwd) as server:
        listed = [thread for thread in server.call("thread/list", {})["data"] if thread["id"] == written["sessionId"]]
        server.call("thread/resume", {"threadId": written["sessionId"]})
        server.call("turn/start", {"threadId": written["sessionId"], "input": [{"type": "text", "text": PROMPT}]})
        server.wait("turn/completed")
    if not listed:
        return "it is not listed"
    if listed[0].get("name") != title:
        return "its title is %r" % listed[0].get("name")


def ask_claude_code(program, home, cwd, written, port):
    environment = {
        "HOME": str(home.parent), "CLAUDE_CONFIG_DIR": str(home), "PATH": os.environ["PATH"], "ANTHROPIC_BASE_URL": "http://127.0.0.1:%d" % port, "ANTHROPIC_API_KEY": "x",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
    }
    command = [program, "--print", "--resume", written["sessionId"], PROMPT]
    done = subprocess.run(command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode:
        return "it exits with %d: %.200s" % (done.returncode, done.stderr or done.stdout)


def ask(client, program, example, case):
    """what differs in a conversation that is handed over, or nothing"""
    is_codex = client == "codex"
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder).resolve()
        home, cwd = folder / "home", folder / "work"
        home.mkdir(), cwd.mkdir()
        with ScriptedModel(fixed="answer") as model:
            (home / "config.toml").write_text(config(model.port))
            given = json.dumps({"live": case["items"]})
            command = [example, client, home, cwd, case["case"]]
            written = json.loads(subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout)
            title = "Handed over: " + case["case"]
            wrong = ask_codex(program, home, cwd, written, title) if is_codex else ask_claude_code(program, home, cwd, written, model.port)
    if wrong:
        return wrong
    wanted, take = list(expected(case["items"], written["report"])), sent if is_codex else sent_by_claude_code
    wanted = with_moves(wanted, case["items"], written["report"])
    has_prompt = lambda request: PROMPT in json.dumps(request.get("input" if is_codex else "messages", []))
    request = next(request for request in model.requests if has_prompt(request) and (not is_codex or request["model"] == "mock-model"))
    got = take(request)
    if not is_codex:
        wanted, got = list(with_additions(wanted, written["report"])), list(with_additions(got, {"added": []}))
    for number in range(max(len(wanted), len(got))):
        pair = [items[number] if number < len(items) else None for items in (wanted, got)]
        if pair[0] != pair[1]:
            return "item %d: expected %.300s, got %.300s" % (number, *map(json.dumps, pair))
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("client", choices=["codex", "claude-code"])
    parser.add_argument("program")
    parser.add_argument("cases")
    parser.add_argument("--example", default=ROOT / "target/debug/examples/handover")
    parser.add_argument("--limit", type=int)
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    lines = subprocess.run(["zstd", "-dc", options.cases], capture_output=True, text=True, check=True).stdout.splitlines()
    cases = [json.loads(line) for line in lines][: options.limit]
    different = 0
    for case in cases:
        try:
            difference = ask(options.client, options.program, options.example, case)
        except (RuntimeError, StopIteration, subprocess.SubprocessError) as error:
            difference = repr(error)
        different += difference is not None
        if difference or options.v:
            print(case["case"], difference or "the same", flush=True)
    print("%d of %d the same" % (len(cases) - different, len(cases)))
    return different > 0


if __name__ == "__main__":
    sys.exit(main())
