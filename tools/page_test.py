#!/usr/bin/env python3
"""Looks at pages of `export --html` and of `serve` in a real browser.

    page_test.py [--bin PATH] [check ...]

The checks: payloads, corpus, reading, live, axe. Without names, all of them. `figures` prints the tables of docs/page.md
instead, and `screenshots` makes its pictures. Needs Chromium; without one it says `skipped`. Data of ../shared is used when it is there.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import browser  # noqa: E402
import payloads  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
BIN = ROOT / "target/release/transcript"


def run(*arguments, ok=(0,), **more):
    done = subprocess.run([BIN, *map(str, arguments)], capture_output=True, **more)
    assert done.returncode in ok, (arguments, done.returncode, done.stderr.decode()[-500:])
    return done.stdout


def entry(kind, parent, content, **more):
    message = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": "msg_" + uuid.uuid4().hex, "model": "claude-sonnet-4-20250514", "usage": {"input_tokens": 3, "output_tokens": 5}}
    return {"type": kind, "uuid": str(uuid.uuid4()), "parentUuid": parent, "sessionId": "s", "cwd": "/work", "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()),
            "message": message} | more


def write_lines(path, entries):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries))
    return path


class Server(contextlib.AbstractContextManager):
    """`transcript serve` over a folder of projects; can be killed and started again at the same address."""

    def __init__(self, root, port=0):
        self.root, self.port, self.token = root, port, "t" + uuid.uuid4().hex
        self.start()

    def start(self):
        environment = os.environ | {"TRANSCRIPT_SERVE_TOKEN": self.token}
        command = [BIN, "--root", self.root, "serve", "--json", "--no-cache", "--port", str(self.port)]
        for _ in range(50):
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
            line = self.process.stdout.readline()
            if line:
                break
            # The port may not be free yet.
            self.process.wait()
            time.sleep(0.1)
        self.url = json.loads(line)["url"]
        self.port = int(self.url.split(":")[2].split("/")[0])

    def kill(self):
        self.process.kill()
        self.process.wait()

    def session(self, project, name):
        return f"{self.url}s/{project}/{name}/"

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            assert self.process.wait(20) == 0, "serve ends with 0"


class Listener(contextlib.AbstractContextManager):
    """Counts connections: a request that leaves a page would come here."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port, self.count = self.socket.getsockname()[1], 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                self.count += 1
                connection.close()

    def __exit__(self, *_):
        self.socket.close()


def complaints(page):
    """Errors and violations of the policy that the browser reports."""
    found = []
    for event in page.events:
        if event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] in ("error", "warning"):
            found.append(event["params"]["entry"]["text"])
        if event["method"] == "Runtime.exceptionThrown":
            found.append(str(event["params"]["exceptionDetails"]))
    return found


def check_payloads(tab, folder):
    """Nothing in a session runs, asks or shows a dialog, wherever it stands."""
    with Listener() as listener:
        every = payloads.all_payloads(f"http://127.0.0.1:{listener.port}")
        entries, parent = [], None
        for payload in every:
            call = "toolu_" + uuid.uuid4().hex
            for kind, content in [
                ("user", payload),
                ("assistant", [{"type": "thinking", "thinking": payload}, {"type": "text", "text": payload},
                               {"type": "tool_use", "id": call, "name": payload[:60], "input": {"command": payload, "file_path": payload, "description": payload}}]),
                ("user", [{"type": "tool_result", "tool_use_id": call, "content": [{"type": "text", "text": payload},
                          {"type": "image", "source": {"type": "base64", "media_type": payload[:80], "data": payload}}]}]),
            ]:
                entries.append(entry(kind, parent, content, cwd=payload, gitBranch=payload))
                parent = entries[-1]["uuid"]
        entries.append({"type": "custom-title", "customTitle": every[0] + every[1], "sessionId": "s"})
        name = str(uuid.uuid4())
        session = write_lines(folder / "projects" / "-work" / f"{name}.jsonl", entries)
        file = folder / "payloads.html"
        run("export", session, "--html", file, "--no-redact", "--tools", "full", "--force", "--plain")
        packed = folder / "packed.html"
        padding = [entry("user", parent, "x" * 2000) for _ in range(2200)]
        write_lines(folder / "large.jsonl", entries + padding)
        run("export", folder / "large.jsonl", "--html", packed, "--no-redact", "--tools", "full", "--force")
        with Server(folder / "projects") as server:
            live = server.session("-work", name)
            for url in [f"file://{file}", f"file://{packed}", live, server.url, f"{server.url}?q=alert", f"{server.url}usage", f"{live}beside"]:
                tab.open(url)
                if url != server.url and "?" not in url and "usage" not in url:
                    tab.evaluate("""(async () => {
                        const page = window.transcriptPage;
                        if (!page) return;
                        for (const piece of page.allPieces()) await page.open(piece);
                        document.querySelectorAll('details').forEach((details) => { details.open = true; });
                        document.querySelectorAll('main *').forEach((element) => {
                            for (const kind of ['click', 'mouseover', 'mouseenter', 'focus', 'error', 'load', 'toggle', 'animationstart'])
                                if (element.localName !== 'a' && element.localName !== 'summary') element.dispatchEvent(new Event(kind));
                        });
                    })()""")
                time.sleep(0.5)
                tab.evaluate("1")
                ran = tab.evaluate("window.__ran || 0")
                assert not ran, (url, "a script of the session ran", ran)
                assert not tab.dialogs(), (url, tab.dialogs())
                outside = [asked for asked in tab.requests() if not asked.startswith(("file://", server.url))]
                assert not outside, (url, outside[:3])
                wrong = complaints(tab)
                assert not wrong, (url, wrong[:3])
                scripts = tab.evaluate("document.querySelectorAll('script').length")
                assert scripts <= 2, (url, scripts)
                if url == f"file://{file}":
                    images = tab.evaluate("[...document.querySelectorAll('main img')].filter((image) => !/^data:image\\/(png|jpeg|gif|webp);/.test(image.src)).length")
                    assert images == 0, images
                    shown = tab.evaluate("document.querySelectorAll('main [id]').length")
                    assert shown == 3 * len(every), (shown, len(every))
        assert listener.count == 0, "a request left the page"
    return f"{len(every)} payloads in 9 places, 7 pages: no dialog, no request, no script, no complaint of the browser"


def story(path):
    """The ids of the entries of a conversation, in order."""
    lines = [json.loads(line) for line in run("replay", path, "--json", "--quiet", ok=(0, 1, 2)).splitlines()]
    if not lines or lines[-1].get("kind") != "end":
        return None
    return [line.get("uuid") or f"line-{line['line']}" for line in lines if line.get("kind") == "entry"]


def check_corpus(tab, folder):
    """The page of every session has a place for each entry of its story; its lines come back."""
    files = sorted(SHARED.glob("corpus/files/**/*.jsonl"))
    if not files:
        return "skipped: no shared data"
    entries = sessions = refused = 0
    for path in files:
        page, back = folder / "corpus.html", folder / "corpus.jsonl"
        done = subprocess.run([BIN, "export", path, "--html", page, "--no-redact", "--force", "--quiet"], capture_output=True)
        if done.returncode:
            refused += 1
            continue
        run("import", page, "--out", back, "--force", "--quiet")
        assert back.read_bytes() == path.read_bytes(), path
        expected = story(path)
        tab.open(f"file://{page}")
        found = tab.evaluate("""(async () => {
            for (const piece of window.transcriptPage.allPieces()) await window.transcriptPage.open(piece);
            return [...document.querySelectorAll('main [id]')].map((element) => element.id).filter((id) => !/^\\d+[.]|^end$/.test(id)).join('\\n');
        })()""").split("\n")
        found = [name for name in found if name]
        clean = ["".join(c for c in name if c.isascii() and (c.isalnum() or c in "-_"))[:64] for name in expected]
        assert sorted(found) == sorted(clean), (path, len(found), len(clean), sorted(set(clean) ^ set(found))[:4])
        assert not complaints(tab), (path, complaints(tab)[:2])
        entries, sessions = entries + len(found), sessions + 1
    return f"{sessions} sessions, {entries} entries: each has one place on its page, and the lines come back byte for byte; {refused} refused"


OBSERVE = """
window.__seen = new Map();
window.__times = [];
window.__watch = () => {
    const note = (element) => {
        for (const one of [element, ...element.querySelectorAll('[id]')]) {
            if (!one.id || window.__seen.has(one.id)) continue;
            window.__seen.set(one.id, 1);
            const sent = /sent (\\d+\\.\\d+)/.exec(one.textContent);
            if (sent) window.__times.push(Date.now() - 1000 * sent[1]);
        }
    };
    note(document.getElementById('conversation'));
    new MutationObserver((changes) => changes.forEach((change) => change.addedNodes.forEach((node) => node.nodeType === 1 && note(node))))
        .observe(document.getElementById('conversation'), { childList: true, subtree: true });
};
"""


class Writer(threading.Thread):
    """Writes entries to a session at a rate."""

    def __init__(self, path, parent, rate, count):
        super().__init__()
        self.path, self.parent, self.rate, self.count, self.written = path, parent, rate, count, []

    def run(self):
        start, number = time.monotonic(), 0
        with self.path.open("ab", buffering=0) as file:
            while number < self.count:
                due = min(self.count, int((time.monotonic() - start) * self.rate) + 1)
                lines = []
                for number in range(number, due):
                    kind = "user" if number % 10 == 0 else "assistant"
                    text = f"entry {number} sent {time.time():.4f}"
                    made = entry(kind, self.parent, text if kind == "user" else [{"type": "text", "text": text}])
                    self.parent = made["uuid"]
                    self.written.append(self.parent)
                    lines.append(json.dumps(made) + "\n")
                number = due
                if lines:
                    file.write("".join(lines).encode())
                time.sleep(min(0.5 / self.rate, 0.05))


IDS = """(async () => {
    const ids = [];
    for (const piece of window.transcriptPage.allPieces()) {
        const html = await (await fetch(piece.dataset.src)).text();
        for (const found of html.matchAll(/ id="([^"]+)"/g)) ids.push(found[1]);
    }
    return ids.join('\\n');
})()"""


def live(tab, folder, rate, count, base=None, kills=0):
    """Watches a session that grows. Returns the times from write to page in milliseconds."""
    name, project = str(uuid.uuid4()), "-live"
    path = folder / f"live{rate}" / project / f"{name}.jsonl"
    if base:
        path.parent.mkdir(parents=True)
        with path.open("wb") as out, open(base, "rb") as source:
            while block := source.read(1 << 24):
                out.write(block)
        parent = None
        for line in run("replay", path, "--format", "ids", "--quiet").decode().splitlines()[-1:]:
            parent = line.split()[2]
        before = []
    else:
        first = [entry("user", None, "start")]
        before, parent = [first[0]["uuid"]], first[0]["uuid"]
        write_lines(path, first)
    with Server(path.parent.parent) as server:
        tab.open(server.session(project, name))
        tab.wait_for("document.getElementById('live').classList.contains('on')")
        time.sleep(1)
        tab.evaluate(OBSERVE + "window.__watch()")
        writer = Writer(path, parent, rate, count)
        writer.start()
        for _ in range(kills):
            time.sleep(max(1.0, count / rate / (kills + 1)))
            server.kill()
            time.sleep(0.5)
            server.start()
        writer.join()
        wanted = json.dumps(writer.written[-1])
        tab.wait_for(f"document.getElementById({wanted}) !== null", 60)
        expected = before + writer.written
        if not base:
            found = tab.evaluate(IDS).split("\n")
            assert found == expected, (rate, len(found), len(expected))
        times = sorted(json.loads(tab.evaluate("JSON.stringify(window.__times)")))
    return times


def check_live(tab, folder):
    """A page beside a session that is written, while its server is killed and started again."""
    said = []
    for rate, count, kills in [(1, 8, 0), (100, 600, 0), (10_000, 60_000, 0), (100, 600, 2), (10_000, 60_000, 2)]:
        times = live(tab, folder / f"k{kills}", rate, count, kills=kills)
        shown = f"p50 {times[len(times) // 2]:.0f} ms, p99 {times[int(len(times) * 0.99)]:.0f} ms" if not kills else f"server killed {kills} times"
        said.append(f"{rate}/s: {count} entries once each, {shown}")
    return "; ".join(said)


def example(folder):
    """A session with a rewound attempt, a compaction, a subagent, a diff, a to-do list, an image, thinking and a gap."""
    name, project = str(uuid.uuid4()), "-work-garden"
    path, lines = folder / "projects" / project / f"{name}.jsonl", []

    def add(kind, parent, content, **more):
        lines.append(entry(kind, parent, content, sessionId=name, cwd="/work/garden", gitBranch="main", **more))
        return lines[-1]["uuid"]

    def call(parent, tool, given, answer, text=None, **more):
        number = "toolu_" + uuid.uuid4().hex[:20]
        content = ([{"type": "text", "text": text}] if text else []) + [{"type": "tool_use", "id": number, "name": tool, "input": given}]
        made = add("assistant", parent, content)
        result = {"type": "tool_result", "tool_use_id": number, "content": answer}
        if more.pop("failed", False):
            result["is_error"] = True
        return add("user", made, [result], **more), number

    last = add("user", None, "Water the beds on dry days only. Look at `weather.py` first.")
    last = add("assistant", last, [{"type": "thinking", "thinking": "The forecast decides, not the calendar."}])
    last, _ = call(last, "Read", {"file_path": "/work/garden/weather.py"}, "def is_dry(day):\n    return day.rain < 1\n", "I start with the forecast.")
    fork, _ = call(last, "TodoWrite", {"todos": [{"content": "Read the forecast", "status": "completed", "activeForm": "Reading"}, {"content": "Change the plan", "status": "in_progress", "activeForm": "Changing"}]}, "ok")
    fork = add("assistant", fork, [{"type": "text", "text": "The forecast has **rain in millimetres**:\n\n| day | rain |\n| --- | --- |\n| Mon | 0 |\n| Tue | 4 |\n\nShall I change the plan?"}])
    abandoned = add("user", fork, "No, ask the sensor instead.")
    add("assistant", abandoned, [{"type": "text", "text": "The sensor says 40 %, which is not enough to decide."}])
    last = add("user", fork, "Yes, and show me what changes.")
    last, _ = call(last, "Edit", {"file_path": "/work/garden/plan.py", "old_string": "water(day)", "new_string": "if is_dry(day):\n    water(day)"}, "The file was updated.",
                   toolUseResult={"filePath": "/work/garden/plan.py", "structuredPatch": [{"oldStart": 3, "oldLines": 2, "newStart": 3, "newLines": 3, "lines": [" for day in week:", "-    water(day)", "+    if is_dry(day):", "+        water(day)"]}]})
    last, _ = call(last, "Bash", {"command": "python plan.py --week 12\npython -m pytest -q", "description": "Run the plan"}, "1 failed, 11 passed\nE   KeyError: 'Sun'", failed=True)
    last, number = call(last, "Task", {"description": "Find the missing day", "prompt": "Why is Sunday missing?", "subagent_type": "Explore"}, "The week has six days.", "A second pair of eyes:", toolUseResult={"agentId": "a1b2c3", "status": "completed"})
    agent = path.with_suffix("") / "subagents" / "agent-a1b2c3.jsonl"
    first = entry("user", None, "Why is Sunday missing?", sessionId=name, isSidechain=True, agentId="a1b2c3")
    write_lines(agent, [first, entry("assistant", first["uuid"], [{"type": "text", "text": "`range(6)` in **week.py** ends on Saturday."}], sessionId=name, isSidechain=True, agentId="a1b2c3")])
    agent.with_suffix(".meta.json").write_text(json.dumps({"agentType": "Explore", "description": "Find the missing day", "toolUseId": number}))
    last = add("user", last, [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}, {"type": "text", "text": "This is the bed."}])
    last = add("assistant", last, [{"type": "text", "text": "Fixed: the week has seven days now, and the bed on the picture is **dry**. See [the notes](https://example.invalid/notes)."}])
    lines.append({"type": "system", "subtype": "compact_boundary", "uuid": str(uuid.uuid4()), "parentUuid": None, "logicalParentUuid": last, "sessionId": name, "timestamp": "2026-03-01T10:00:00.000Z",
                  "content": "Conversation compacted", "compactMetadata": {"trigger": "manual", "preTokens": 41000}})
    last = add("user", lines[-1]["uuid"], "The garden is watered on dry days; the week has seven days.", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    last = add("user", last, "And now the greenhouse?")
    add("assistant", str(uuid.uuid4()), [{"type": "text", "text": "The greenhouse needs water every day."}])
    lines.append({"type": "custom-title", "customTitle": "Water the beds on dry days", "sessionId": name})
    write_lines(path, lines)
    return path, lines, abandoned


def large(folder, size):
    """A session of about `size` bytes whose last answer has a word that nothing else has."""
    lines, parent, text = [], None, "The beds are watered on dry days, never at noon. " * 20
    while len(lines) * 1300 < size:
        number = len(lines)
        lines.append(entry("user" if number % 40 == 0 else "assistant", parent, f"{number}: {text}" if number % 40 == 0 else [{"type": "text", "text": f"{number}: {text}"}]))
        parent = lines[-1]["uuid"]
    lines.append(entry("assistant", parent, [{"type": "text", "text": "At last the quince is ripe."}]))
    return write_lines(folder / f"{uuid.uuid4()}.jsonl", lines), lines


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAADAAAAAwCAIAAADYYG7QAAAAVElEQVR42u3WsQ0AIAgEQEa0dhIncRKHcCwXwNJYcAklCVc9H3uNdPps6bzeDyAgoHKgX4dv+0BAQPVAkhoICEgf8jqAgPQhSQ0EBKQPeR1AQKVBBxwSatN6N6LnAAAAAElFTkSuQmCC"


def prompts(folder, count):
    """A session of prompts with answers that are higher than a window; each answer has a call, and one prompt an image."""
    lines, parent = [], None
    for number in range(count):
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
        text = f"prompt {number}\n  indented line of {number}"
        lines.append(entry("user", parent, [image, {"type": "text", "text": text}] if number == 3 else text))
        lines.append(entry("assistant", lines[-1]["uuid"], [{"type": "text", "text": "\n\n".join(f"paragraph {row}" for row in range(60))},
                                                            {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "echo walnut"}}]))
        parent = lines[-1]["uuid"]
        lines.append(entry("user", parent, [{"type": "tool_result", "tool_use_id": f"t{number}", "content": "walnut"}]))
        lines.append(entry("assistant", lines[-1]["uuid"], [{"type": "text", "text": "One walnut." if number == 7 else "Done."}]))
        parent = lines[-1]["uuid"]
    return write_lines(folder / f"{uuid.uuid4()}.jsonl", lines), [line["uuid"] for line in lines[::4]]


def check_prompts(tab, folder):
    """Each `j` and `k` is one prompt, the list marks the prompt that was gone to, and find counts what the filter shows."""
    page = folder / "prompts.html"
    session, ids = prompts(folder / "projects" / "-work-prompts", 12)
    run("export", session, "--html", page)
    marked = "[...document.querySelectorAll('nav a')].findIndex((link) => link.hasAttribute('aria-current'))"
    typed = "document.querySelector('.person .typed')"
    for width, height in [(1280, 900), (1440, 1000), (1280, 500)]:
        tab.size(width, height)
        tab.open(f"file://{page}")
        assert tab.evaluate(f"getComputedStyle({typed}).whiteSpace").startswith("pre-wrap") and "0\n  indented" in tab.evaluate(f"{typed}.textContent")
        for number in range(6):
            tab.key("j")
            tab.wait_for(f"{marked} === {number}")
        for number in (4, 3, 2):
            tab.key("k")
            tab.wait_for(f"{marked} === {number}")
        for number in (7, 3):
            tab.evaluate(f"document.querySelectorAll('nav a')[{number}].click()")
            tab.wait_for(f"{marked} === {number}")
        # However a prompt is gone to, it is the one that is marked.
        for number in (5, 2):
            tab.open(f"file://{page}#{ids[number]}")
            tab.wait_for(f"{marked} === {number}")
    tab.size(1280, 900)
    # A live page opens its pieces when they are near, so the next prompt may not be there yet.
    is_at = "((id) => { const prompt = document.getElementById(id), at = prompt && prompt.getBoundingClientRect().top; return prompt && at > 30 && at < 80; })"
    with Server(folder / "projects") as server:
        for place in ("?at=", "#"):
            tab.open("about:blank")
            tab.open(server.session("-work-prompts", session.stem) + place + ids[6])
            tab.wait_for(f"{is_at}('{ids[6]}')")
            for key, number in [("j", 7), ("j", 8), ("k", 7), ("k", 6), ("k", 5), ("k", 4), ("j", 5)]:
                tab.key(key)
                tab.wait_for(f"{is_at}('{ids[number]}')")
    choose = "((value) => { const show = document.getElementById('show'); show.value = value; show.dispatchEvent(new Event('change')); })"
    found = "document.getElementById('found').textContent"
    tab.open(f"file://{page}")
    tab.key("/")
    for letter in "walnut":
        tab.key(letter)
    tab.wait_for(f"{found}.startsWith('1 of 25')")
    tab.evaluate(f"{choose}('talk')")
    tab.wait_for(f"{found} === '1 of 1 · 24 more hidden'")
    tab.evaluate(f"{choose}('prompts')")
    tab.wait_for(f"{found} === 'nothing shown · 25 more hidden'")
    # What is hidden is shown when one goes there.
    call = tab.evaluate("document.querySelectorAll('main .result')[5].id || document.querySelectorAll('main .call')[5].id")
    tab.evaluate(f"location.hash = '#{call}'")
    tab.wait_for("document.getElementById('show').value === ''")
    return "a prompt for each key, the list, typed lines, and find under a filter"


def check_reading(tab, folder):
    """Find, permalinks, branches, filters and keys work; everything can be read without scripts; folds and place stay while it grows."""
    session, lines, abandoned = example(folder)
    page = folder / "example.html"
    run("export", session, "--html", page)
    tab.open(f"file://{page}")
    visible = "((text) => [...document.querySelectorAll('main article')].some((part) => part.checkVisibility() && part.textContent.includes(text)))"
    assert tab.evaluate(f"{visible}('show me what changes')") and not tab.evaluate(f"{visible}('ask the sensor')")
    # A branch takes the place of what follows, and gives it back.
    tab.evaluate("document.querySelector('.branch > summary').click()")
    assert tab.evaluate(f"{visible}('ask the sensor')") and not tab.evaluate(f"{visible}('show me what changes')")
    tab.evaluate("document.querySelector('.branch > summary').click()")
    assert tab.evaluate(f"{visible}('show me what changes')")
    # The subagent is between its call and its result.
    order = tab.evaluate("""[...document.querySelectorAll('main .call, main .conversation, main .result')].map((part) =>
        part.matches('.conversation') ? 'agent' : part.textContent.includes('Task') ? 'call' : part.textContent.includes('six days') ? 'result' : '').join('')""")
    assert "callagentresult" in order, order
    assert tab.evaluate("document.querySelectorAll('.turn').length") >= 3
    assert tab.evaluate("document.querySelectorAll('.gap').length") >= 1
    tab.evaluate("document.getElementById('show').value = 'prompts'; document.getElementById('show').dispatchEvent(new Event('change'))")
    assert not tab.evaluate(f"{visible}('rain in millimetres')") and tab.evaluate(f"{visible}('greenhouse')")
    # A link to an entry in a fold opens the fold.
    tab.open(f"file://{page}#2.{abandoned}")
    tab.wait_for(f"{visible}('ask the sensor')")
    # Without scripts, all of it is there.
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    tab.open(f"file://{page}")
    text = tab.call("DOM.getOuterHTML", nodeId=tab.call("DOM.getDocument", depth=-1)["root"]["nodeId"])["outerHTML"]
    tab.call("Emulation.setScriptExecutionDisabled", value=False)
    for part in ["rain in millimetres", "ask the sensor", "ends on Saturday", "is_dry(day)", "data:image/png;base64,iVBOR", "greenhouse"]:
        assert part in text, part
    # A session in pieces: its end is found, and linked to, although it is not on the page.
    path, lines = large(folder, 8 << 20)
    page = folder / "large.html"
    run("export", path, "--html", page)
    tab.open(f"file://{page}")
    assert tab.evaluate("document.querySelectorAll('[data-packed]').length") > 20
    assert not tab.evaluate(f"{visible}('quince')")
    tab.key("f", modifiers=2)
    assert tab.evaluate("document.activeElement.id") == "find"
    for letter in "quince":
        tab.key(letter)
    tab.wait_for(f"{visible}('quince')")
    assert tab.wait_for("document.getElementById('found').textContent") == "1 of 1"
    inside = "((element) => { const at = element.getBoundingClientRect(); return at.top < innerHeight && at.bottom > 0; })"
    last = lines[-1]["uuid"]
    tab.wait_for(f"{inside}(document.getElementById('{last}'))")
    middle = lines[len(lines) // 2]["uuid"]
    tab.open(f"file://{page}#{middle}")
    tab.wait_for(f"!!document.getElementById('{middle}') && {inside}(document.getElementById('{middle}'))")
    tab.evaluate("[...document.querySelectorAll('nav a')].at(20).click()")
    tab.wait_for(f"!!document.getElementById('{lines[800]['uuid']}') && {inside}(document.getElementById('{lines[800]['uuid']}'))")
    large_session, large_lines = large(folder / "projects" / "-work-garden", 8 << 20)
    # The live page: open blocks and the scroll position stay, and the end is followed.
    with Server(folder / "projects") as server:
        tab.open(server.session("-work-garden", session.stem))
        tab.wait_for("document.getElementById('live').classList.contains('on') && !!document.querySelector('.result details')")
        tab.evaluate("transcriptPage.follows = false; scrollTo(0, 150); document.querySelector('.result details:not([open])').open = true; window.__mark = document.querySelector('.result details[open]')")
        before = tab.evaluate("[scrollY, document.querySelectorAll('main details[open]').length].join()")
        added = entry("user", json.loads(session.read_text().splitlines()[-2])["uuid"], "One more thing: frost?")
        with session.open("a") as file:
            file.write(json.dumps(added) + "\n")
        tab.wait_for(f"!!document.getElementById('{added['uuid']}')")
        assert tab.evaluate("[scrollY, document.querySelectorAll('main details[open]').length].join()") == before
        assert tab.evaluate("window.__mark.isConnected && window.__mark.open")
        # A place to start at.
        tab.open(server.session("-work-garden", large_session.stem) + f"?at={large_lines[700]['uuid']}")
        there = large_lines[700]["uuid"]
        tab.wait_for(f"!!document.getElementById('{there}') && {inside}(document.getElementById('{there}'))")
        # With the keyboard alone: the search of the list, a session, its find.
        tab.open(server.url)
        for _ in range(3):
            tab.key("Tab")
        for letter in "forecast":
            tab.key(letter)
        tab.key("Enter")
        tab.wait_for("document.querySelectorAll('.hit').length > 0")
        tab.open(server.session("-work-garden", session.stem))
        # The list may have loaded just now.
        tab.wait_for("!!window.transcriptPage")
        tab.key("/")
        assert tab.evaluate("document.activeElement.id") == "find"
        # On a phone nothing is wider than the screen.
        tab.size(390, 800, mobile=True)
        for url in [server.url, server.session("-work-garden", session.stem), f"file://{page}"]:
            tab.open(url)
            time.sleep(0.3)
            assert tab.evaluate("document.documentElement.scrollWidth") <= 390, url
        tab.size(1280, 900)
    return "find, permalinks, branches, subagents, filters, folds, keys, a phone's width, and reading without scripts"


def axe_source():
    named = os.environ.get("AXE")
    if named:
        return pathlib.Path(named).read_text()
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(["npm", "pack", "--silent", "axe-core@4"], cwd=folder, capture_output=True)
        found = list(pathlib.Path(folder).glob("*.tgz"))
        if packed.returncode or not found:
            return None
        return subprocess.run(["tar", "-xOzf", found[0], "package/axe.min.js"], capture_output=True, check=True).stdout.decode()


def check_axe(tab, folder):
    """No violation of the rules of axe, on no page, light and dark."""
    try:
        source = axe_source()
    except FileNotFoundError:
        source = None
    if not source:
        return "skipped: no axe-core (AXE=path names axe.min.js)"
    session, _, _ = example(folder)
    page, packed = folder / "example.html", folder / "large.html"
    run("export", session, "--html", page)
    run("export", large(folder, 6 << 20)[0], "--html", packed)
    passed = 0
    with Server(folder / "projects") as server:
        live = server.session("-work-garden", session.stem)
        for url in [f"file://{page}", f"file://{packed}", server.url, f"{server.url}?q=forecast", f"{server.url}usage", live, f"{live}a/a1b2c3/", f"{live}beside"]:
            for dark in [False, True]:
                tab.size(1280, 900, dark=dark)
                tab.open(url)
                time.sleep(0.3)
                tab.evaluate("document.querySelectorAll('details:not(.branch)').forEach((details) => { details.open = true; })")
                tab.evaluate(source + ";0")
                found = json.loads(tab.evaluate("axe.run().then((found) => JSON.stringify([found.passes.length, found.violations.map((wrong) => [wrong.id, wrong.nodes.slice(0, 2).map((node) => node.html.slice(0, 120) + ' ' + (node.any[0] || node.all[0] || {}).message)])]))"))
                assert not found[1], (url, dark, found[1])
                passed += found[0]
    tab.size(1280, 900)
    return f"0 violations on 8 pages, light and dark ({passed} rules passed)"


SCROLL = """(async () => {
    const tasks = [];
    new PerformanceObserver((list) => list.getEntries().forEach((entry) => tasks.push(entry.duration))).observe({ type: 'longtask' });
    let nodes = 0;
    const frames = 240, height = document.documentElement.scrollHeight;
    for (let frame = 0; frame < frames; frame++) {
        if (window.transcriptPage) transcriptPage.follows = false;
        // By turns on to the next screen, and far away.
        scrollTo(0, frame % 40 === 0 ? (height * frame) / frames : scrollY + innerHeight * 0.7);
        await new Promise((done) => setTimeout(done, 50));
        const walker = document.createTreeWalker(document, NodeFilter.SHOW_ALL);
        let count = 0;
        while (walker.nextNode()) count++;
        nodes = Math.max(nodes, count);
    }
    return JSON.stringify({ longest: Math.round(Math.max(0, ...tasks)), nodes });
})()"""


def timed(*command, rounds=3):
    """Median seconds, and the most memory in MiB."""
    times, memory = [], 0
    for _ in range(rounds):
        started = time.monotonic()
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
        times.append(time.monotonic() - started)
        memory = max(memory, used.ru_maxrss // 1024)
        assert status == 0, (command, status)
    return sorted(times)[rounds // 2], memory


def seen(tab, url, seconds=1.5):
    """First contentful paint, heap and nodes of a page."""
    tab.open("about:blank")
    tab.call("HeapProfiler.collectGarbage")
    tab.open(url)
    time.sleep(seconds)
    paint = tab.evaluate("(performance.getEntriesByName('first-contentful-paint')[0] || { startTime: -1 }).startTime")
    return paint, tab


def figures(arguments):
    """Prints the tables of docs/page.md."""
    data = {path.stem: path for path in arguments.data.glob("*.jsonl")}
    folder = pathlib.Path(tempfile.mkdtemp(prefix="transcript-figures-"))
    print("| export | time | memory | size |\n| --- | --- | --- | --- |")
    for name, path in sorted(data.items(), key=lambda item: item[1].stat().st_size):
        if path.stat().st_size > 3e8:
            continue
        for options in [["--no-lines"], []]:
            took, memory = timed(BIN, "export", path, "--html", folder / f"{name}.html", "--force", "--quiet", *options, rounds=5)
            size = (folder / f"{name}.html").stat().st_size
            print(f"| {name} {' '.join(options)} | {took:.3f} s | {memory} MiB | {size / 1e6:.1f} MB, {size / path.stat().st_size:.1%} |", flush=True)
    for name, command in peers(arguments, folder).items():
        for file in ["f1e7"]:
            if file not in data:
                continue
            try:
                took, memory = timed(*command(data[file], folder), rounds=1)
            except (AssertionError, OSError) as error:
                print(f"| {name} {file} | {error} |")
                continue
            made = sorted((folder / name).rglob("*.html"))
            size = sum(path.stat().st_size for path in made)
            print(f"| {name} {file} | {took:.2f} s | {memory} MiB | {size / 1e6:.1f} MB, {size / data[file].stat().st_size:.1%}, {len(made)} files |", flush=True)
    print("\n| page | first paint | heap | nodes while scrolled | longest task |\n| --- | --- | --- | --- | --- |")
    root = folder / "root"
    names = {}
    for name, path in data.items():
        names[name] = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
        (root / "-bench").mkdir(parents=True, exist_ok=True)
        os.link(path, root / "-bench" / f"{names[name]}.jsonl") if os.stat(path).st_dev == os.stat(root).st_dev else (root / "-bench" / f"{names[name]}.jsonl").symlink_to(path)
    with Server(root) as server:
        pages = {f"{name}, file": f"file://{folder / name}.html" for name in data if (folder / f"{name}.html").exists()}
        pages |= {f"{name}, served": server.session("-bench", names[name]) for name in data}
        for name in peers(arguments, folder):
            made = sorted((folder / name).rglob("*.html"), key=lambda path: -path.stat().st_size) if (folder / name).exists() else []
            pages |= {f"{name} f1e7": f"file://{made[0]}"} if made else {}
        for name, url in pages.items():
            with browser.Browser() as chromium:
                tab = chromium.page()
                tab.size(1280, 900)
                tab.open("about:blank")
                paints = []
                for _ in range(3):
                    try:
                        paint, _ = seen(tab, url)
                    except Exception as error:  # noqa: BLE001: a page that freezes is a result
                        print(f"| {name} | {type(error).__name__} |")
                        break
                    paints.append(paint)
                else:
                    try:
                        scrolled = json.loads(tab.evaluate(SCROLL))
                    except TimeoutError:
                        print(f"| {name} | {sorted(paints)[1]:.0f} ms | not scrolled through in 120 s |", flush=True)
                        continue
                    tab.call("HeapProfiler.collectGarbage")
                    heap = tab.metrics()["JSHeapUsedSize"] / 1e6
                    print(f"| {name} | {sorted(paints)[1]:.0f} ms | {heap:.1f} MB | {scrolled['nodes']} | {scrolled['longest']} ms |", flush=True)
    print("\n| live beside | entries a second | write to page p50 | p99 |\n| --- | --- | --- | --- |")
    for base, rate, count in [(None, 1, 20), (None, 100, 1000), (None, 10_000, 60_000), ("f1e7", 20, 200), ("f1e8", 20, 200), ("f1e9", 20, 200)]:
        if base and base not in data:
            continue
        with browser.Browser() as chromium:
            tab = chromium.page()
            tab.size(1280, 900)
            times = live(tab, folder / f"live-{base}", rate, count, base=data[base] if base else None)
            print(f"| {base or 'an empty session'} | {rate} | {times[len(times) // 2]:.0f} ms | {times[int(len(times) * 0.99)]:.0f} ms ({len(times)} of {count}) |", flush=True)
    shutil.rmtree(folder, ignore_errors=True)


def peers(arguments, folder):
    """Commands of other tools that are there, by name."""
    found = {}
    for path in arguments.peers.split(":") if arguments.peers else []:
        tool = pathlib.Path(path)
        out = folder / tool.name
        out.mkdir(exist_ok=True)
        if tool.name == "claude-code-log":
            found[tool.name] = lambda file, folder, tool=tool, out=out: [tool, file, "-o", out / "page.html"]
        elif tool.name == "claude-code-transcripts":
            found[tool.name] = lambda file, folder, tool=tool, out=out: [tool, "json", file, "-o", out]
        else:
            found[tool.name] = lambda file, folder, tool=tool, out=out: [tool, file, "-o", out / "page.html"]
    return found



def screenshots(arguments):
    """Makes the pictures of docs/page.md."""
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    with browser.Browser() as chromium, tempfile.TemporaryDirectory() as folder:
        folder, tab = pathlib.Path(folder), chromium.page()
        session, _, _ = example(folder)
        page, packed = folder / "example.html", folder / "large.html"
        run("export", session, "--html", page)

        def shot(name, url, width=1200, height=860, dark=False, before="0", mobile=False):
            tab.size(width, height, dark=dark, mobile=mobile)
            tab.open("about:blank")
            tab.open(url)
            time.sleep(0.5)
            tab.evaluate(before)
            time.sleep(0.7)
            tab.screenshot(out / f"{name}.png")

        shot("light", f"file://{page}")
        shot("dark", f"file://{page}", dark=True)
        shot("phone", f"file://{page}", width=390, height=800, mobile=True)
        shot("branch", f"file://{page}", before="document.querySelector('.branch > summary').click(); scrollTo(0, 420)")
        shot("subagent", f"file://{page}", before="document.querySelector('.conversation > summary').click(); scrollTo(0, document.querySelector('.conversation').getBoundingClientRect().top + scrollY - 180)")
        tab.call("Emulation.setScriptExecutionDisabled", value=True)
        shot_before = out / "no-script.png"
        tab.size(1200, 860)
        tab.open("about:blank")
        tab.open(f"file://{page}")
        time.sleep(0.5)
        tab.screenshot(shot_before)
        tab.call("Emulation.setScriptExecutionDisabled", value=False)
        big = next((path for path in arguments.data.glob("*.jsonl") if 9e7 < path.stat().st_size < 1.2e8), None)
        if big is None:
            big, _ = large(folder, 100 << 20)
        run("export", big, "--html", packed, "--no-redact", "--no-lines")
        shot("large", f"file://{packed}", before="""(() => { const find = document.getElementById('find'); find.value = 'tokio'; find.dispatchEvent(new Event('input'));
            return new Promise((done) => setTimeout(done, 6000)); })()""")
        shutil.copy(big, session.parent / f"{uuid.uuid4()}.jsonl")
        with Server(folder / "projects") as server:
            shot("sessions", server.url)
            shot("search", f"{server.url}?q=forecast")
            shot("usage", f"{server.url}usage")
            shot("beside", server.session("-work-garden", session.stem) + "beside", width=1400)


CHECKS = {"payloads": check_payloads, "corpus": check_corpus, "reading": check_reading, "prompts": check_prompts, "axe": check_axe, "live": check_live}


def main():
    global BIN
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--bin", type=pathlib.Path, default=BIN)
    arguments.add_argument("--data", type=pathlib.Path, default=pathlib.Path("."), help="the folder of sessions for figures")
    arguments.add_argument("--peers", help="paths of other tools for figures, separated by colons")
    arguments.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/page", help="the folder for screenshots")
    arguments.add_argument("checks", nargs="*", choices=[*CHECKS, "figures", "screenshots", []])
    arguments = arguments.parse_args()
    BIN = arguments.bin.resolve()
    if not browser.find():
        print("skipped: no Chromium (CHROMIUM=path names one)")
        return
    if arguments.checks in (["figures"], ["screenshots"]):
        return globals()[arguments.checks[0]](arguments)
    failed = False
    for name in arguments.checks or CHECKS:
        with browser.Browser() as chromium, tempfile.TemporaryDirectory(prefix="transcript-page-") as folder:
            tab = chromium.page()
            tab.size(1280, 900)
            started = time.monotonic()
            try:
                said = CHECKS[name](tab, pathlib.Path(folder))
            except Exception as error:  # noqa: BLE001: every check is run
                failed, said = True, f"FAILED: {error!r}"
                if os.environ.get("TRACE"):
                    raise
            print(f"{name}: {said} ({time.monotonic() - started:.0f} s)", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
