"""The sessions that tools/tour.py and tools/picture.py show: three long ones and nine of a nightly job, of people and projects that do not
exist. `write(folder)` makes the same bytes each time; times are in UTC, ids are hashes of what they name."""
import argparse, base64, datetime, difflib, hashlib, json, os, pathlib, sys, tempfile

HOME = "/home/ada"


class Session:
    """A session as the client writes it: one entry for each block, each answered call followed by its result."""

    def __init__(self, root, name, folder, branch, start, model="claude-sonnet-4-5-20250929", agent=None):
        self.root, self.name, self.folder, self.branch, self.model, self.agent = root, name, folder, branch, model, agent
        self.id = agent.id if agent else uid(name)
        self.clock = datetime.datetime.fromisoformat(start)
        self.lines, self.parent, self.made, self.tokens, self.turn = [], None, 0, 14_000, (0, self.clock)

    def file(self):
        project = self.root / "projects" / self.folder.replace("/", "-").replace(".", "-")
        return project / self.id / "subagents" / f"agent-{self.name}.jsonl" if self.agent else project / f"{self.id}.jsonl"

    def save(self):
        self.file().parent.mkdir(parents=True, exist_ok=True)
        self.file().write_text("".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in self.lines))
        os.utime(self.file(), (self.clock.timestamp(),) * 2)

    def wait(self, seconds):
        self.clock += datetime.timedelta(seconds=seconds)

    def entry(self, kind, **members):
        self.made += 1
        entry = {"parentUuid": self.parent, "isSidechain": bool(self.agent), "type": kind, **members,
                 "uuid": uid(f"{self.name} {self.made}"), "timestamp": self.clock.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
                 "userType": "external", "entrypoint": "cli", "cwd": self.folder, "sessionId": self.id,
                 "version": "2.1.219", "gitBranch": self.branch}
        if self.agent:
            entry["agentId"] = self.name
        self.lines.append(entry)
        self.parent = entry["uuid"]
        return entry

    def prompt(self, text, pause=90, **members):
        self.wait(pause)
        entry = self.entry("user", message={"role": "user", "content": text}, **members)
        self.turn = (self.made, self.clock)
        return entry

    def answer(self, *blocks):
        """Blocks are ("thinking", text), ("text", text) or (tool, input, result text, structured result, seconds)."""
        self.wait(4)
        calls = [block for block in blocks if len(block) > 2]
        self.tokens += 900 + 37 * (self.made % 23)
        out = 120 + 29 * (self.made % 17)
        key, ids = hashlib.md5(f"{self.name} {self.made}".encode()).hexdigest()[:24], []
        for block in blocks:
            if block[0] == "thinking":
                content = {"type": "thinking", "thinking": block[1],
                           "signature": base64.b64encode(f"made for the tour {key}".encode()).decode()}
            elif block[0] == "text":
                content = {"type": "text", "text": block[1]}
            else:
                content = {"type": "tool_use", "id": f"toolu_01{key[:21]}{len(ids)}", "name": block[0], "input": block[1]}
            entry = self.entry("assistant", requestId=f"req_011{key}", message={
                "model": self.model, "id": f"msg_01{key}", "type": "message", "role": "assistant", "content": [content],
                "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None,
                "usage": {"input_tokens": 6, "cache_creation_input_tokens": 900, "cache_read_input_tokens": self.tokens - 906,
                          "output_tokens": out, "service_tier": "standard"}})
            if len(block) > 2:
                ids.append((block, content["id"], entry["uuid"]))
        for (_, _, text, structured, seconds), call, caller in ids:
            self.wait(seconds)
            failed = isinstance(text, str) and text.startswith("Exit code")
            self.entry("user", message={"role": "user", "content": [
                {"tool_use_id": call, "type": "tool_result", "content": text, "is_error": failed}]},
                toolUseResult=structured, sourceToolAssistantUUID=caller)

    def end_turn(self):
        first, since = self.turn
        self.entry("system", subtype="turn_duration", durationMs=int((self.clock - since).total_seconds() * 1000),
                   messageCount=sum(line["type"] in ("user", "assistant") for line in self.lines), isMeta=False)

    def path(self, name):
        return f"{self.folder}/{name}"

    def grep(self, word, *found):
        return ("Grep", {"pattern": word, "output_mode": "content", "-n": True}, "\n".join(found),
                {"mode": "content", "numFiles": 0, "filenames": [], "content": "\n".join(found), "numLines": len(found)}, 1)

    def read(self, name, text):
        numbered = "\n".join(f"{i:6}\t{line}" for i, line in enumerate(text.split("\n"), 1))
        return ("Read", {"file_path": self.path(name)}, numbered, {"type": "text", "file": {
            "filePath": self.path(name), "content": text, "numLines": text.count("\n") + 1, "startLine": 1,
            "totalLines": text.count("\n") + 1}}, 1)

    def edit(self, name, around, old, new, line):
        before, after = around
        lines = [" " + before] + ["-" + one for one in old.split("\n")] + ["+" + one for one in new.split("\n")] + [" " + after]
        return ("Edit", {"file_path": self.path(name), "old_string": old, "new_string": new},
                f"The file {self.path(name)} has been updated.",
                {"filePath": self.path(name), "oldString": old, "newString": new, "structuredPatch": [
                    {"oldStart": line, "oldLines": old.count("\n") + 3, "newStart": line, "newLines": new.count("\n") + 3,
                     "lines": lines}], "userModified": False, "replaceAll": False}, 1)

    def bash(self, command, output, seconds=3):
        return ("Bash", {"command": command, "description": "Run it"}, output,
                {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}, seconds)

    def todos(self, *items):
        marks = {" ": "pending", ">": "in_progress", "x": "completed"}
        todos = [{"content": text, "status": marks[mark], "activeForm": text} for mark, text in items]
        return ("TodoWrite", {"todos": todos}, "Todos have been modified successfully.", {"oldTodos": [], "newTodos": todos}, 0)

    def compact(self, trigger, before, after, keep, summary):
        """Keeps the last `keep` entries of the chain, word for word."""
        self.wait(31)
        kept = [line["uuid"] for line in self.lines if "uuid" in line][-keep:]
        last, self.parent = self.parent, None
        boundary = self.entry("system", subtype="compact_boundary", content="Conversation compacted", isMeta=False,
                              level="info", logicalParentUuid=last)
        anchor = uid(f"{self.name} {self.made + 1}")
        boundary["compactMetadata"] = {
            "trigger": trigger, "preTokens": before, "durationMs": 31_000, "postTokens": after,
            "preservedSegment": {"headUuid": kept[0], "anchorUuid": anchor, "tailUuid": kept[-1]},
            "preservedMessages": {"anchorUuid": anchor, "uuids": kept, "allUuids": kept}}
        self.prompt(summary, 0, isVisibleInTranscriptOnly=True, isCompactSummary=True)
        self.tokens = after

    def title(self, text):
        self.lines.append({"type": "ai-title", "aiTitle": text, "sessionId": self.id})

    def step(self, change):
        """One turn: a prompt, a look around, a change, its tests, and the answer."""
        prompt, thought, name, word, line, old, new, test, answer = change
        around = (f"// {word}", "// end") if name.endswith((".rs", ".ts")) else (f"# {word}", "# end")
        self.prompt(prompt, 60 + 23 * (self.made % 9))
        text = "\n".join([around[0], *old.split("\n"), around[1]])
        self.answer(("thinking", thought), self.grep(word, f"{name}:{line}: {old.splitlines()[0].strip()}"), self.read(name, text))
        self.answer(("text", f"The place is `{name}`. I change it and run the tests of `{test}`."),
                    self.edit(name, around, old, new, line))
        run = {"rs": "cargo test", "py": "pytest -q", "ts": "npm test --"}[name.rsplit(".")[-1]] + f" {test}"
        count = 3 + self.made % 8
        if self.made % 5 < 2:
            self.answer(self.bash(run, f"Exit code 1\n\x1b[31mFAILED\x1b[0m {test}: expected the new form, found the old one\n"
                                       f"1 failed, {count} passed", 6))
            self.answer(("text", "The test still has what the code did before. It has to say what we want now."),
                        self.edit(f"tests/{test}.{name.rsplit('.')[-1]}", around, "expect_old()", "expect_new()", 12))
        self.answer(self.bash(run, f"\x1b[32mok\x1b[0m {test}: {count + 1} passed in {0.4 + count / 10:.1f} s", 5))
        self.answer(("text", answer))
        self.end_turn()


def uid(text):
    h = hashlib.md5(f"tour {text}".encode()).hexdigest()
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-a{h[17:20]}-{h[20:]}"


# prompt, thought, file, word, line, old, new, test, answer
KILN = [
    ("`kiln build` renders all 900 pages when I touch one. Find out what it compares, and make it render only what changed.",
     "Times or hashes? Look for where a page is declared out of date.", "src/stale.rs", "is_stale", 41,
     "page.modified > output.modified", "page.digest != self.seen.digest(page.id)", "stale",
     "It compared times, and `git checkout` sets them all. Now it compares a digest of the source. A second build of the example site renders 0 of 900 pages."),
    ("A change to a template must render the pages that use it, though.", "The digest of a page has to include its template, and what that includes.",
     "src/digest.rs", "fn digest", 12, "hash(&page.source)", "hash(&page.source) ^ self.templates.digest(page.template)", "digest",
     "The digest of a page now covers its template and all that the template includes. Touching `base.html` renders 900 pages, `tag.html` 31."),
    ("And data files? The team page reads `team.toml`.", "Pages read data through one function, so that is where a dependency can be recorded.",
     "src/data.rs", "fn load", 27, "fs::read_to_string(path)?", "self.reads.record(page, path);\nfs::read_to_string(path)?", "data",
     "Each page remembers the data files that it has read. `team.toml` renders one page."),
    ("What if a page is deleted? I still see its output in `public`.", "Outputs without a source: compare the list of the last build with this one.",
     "src/prune.rs", "fn prune", 8, "// nothing to do", "for old in last.difference(&now) {\n    fs::remove_file(public.join(old))?;\n}", "prune",
     "Outputs of the last build that have no source now are removed. Files that kiln did not write stay."),
    ("Two builds at the same time broke the cache yesterday (CI runs them in parallel).", "It is written in place. A rename is atomic; a lock is not needed for readers.",
     "src/cache.rs", "fn save", 63, "fs::write(&self.path, bytes)", "let new = self.path.with_extension(\"new\");\nfs::write(&new, bytes)?;\nfs::rename(new, &self.path)", "cache",
     "The cache is written beside the old one and renamed over it. The later build wins, and no build sees half a cache."),
    ("The watcher builds twice for one save.", "Editors write, then rename: two events. Wait until 50 ms were quiet.",
     "src/watch.rs", "fn next_change", 30, "events.recv()?", "quiet(&events, Duration::from_millis(50))?", "watch",
     "Events are collected until 50 ms pass without one. vim, helix and VS Code now cause one build each."),
    ("Feeds have yesterday's date as soon as anything is built.", "The date of the feed should be that of its newest post.",
     "src/feed.rs", "updated", 19, "OffsetDateTime::now_utc()", "posts.iter().map(|post| post.updated).max()", "feed",
     "A feed is as new as its newest post, so it does not change without one."),
    ("How long does a build take now? Measure it, cold and warm.", "Ten runs each. The time of the first run after the cache is deleted is the cold one.",
     "src/timing.rs", "fn report", 5, "println!(\"{:?}\", total)", "println!(\"{} of {} pages, {:.2} s\", built, all, total.as_secs_f64())", "timing",
     "Cold 4.10 s, warm 0.09 s. Most of the warm build is reading 900 files to hash them."),
    ("Can it skip the reading when size and time are as before?", "That is what git does: trust the time unless it is as new as the index itself.",
     "src/stale.rs", "fn digest_of", 58, "hash(&fs::read(path)?)", "match self.index.unchanged(path)? {\n    Some(digest) => digest,\n    None => hash(&fs::read(path)?),\n}", "stale_index",
     "Warm 0.02 s. A file whose time is not older than the index is read again, as git does it, so a change within the same second is seen."),
    ("Images are copied each time as well.", "A hard link costs nothing, but then an edit in public changes the source. Compare and skip.",
     "src/assets.rs", "fn copy", 22, "fs::copy(from, to)?;", "if !same(&from, &to)? {\n    fs::copy(from, to)?;\n}", "assets",
     "Images with the same size and time are left alone. 340 MB are no longer copied by each build."),
    ("`kiln build --clean` should forget all this.", "Remove the cache file first, then what it lists.",
     "src/main.rs", "struct Build", 34, "drafts: bool,", "drafts: bool,\n/// Forgets what earlier builds made.\nclean: bool,", "cli",
     "`--clean` removes the cache and the outputs that it lists, then builds everything."),
    ("Then write the section of the manual, and stop there for today.", "One paragraph on what is compared, one on --clean.",
     "src/help.rs", "BUILD", 3, "\"Builds the site.\"", "\"Builds the pages that changed since the last build. See kiln help cache.\"", "help",
     "The manual has a page `cache` now: what makes a page out of date, where the cache is, and when `--clean` is needed (never, as far as I know). Open: nothing. The branch is ready for review."),
]

POST = [
    ("Some customers get the same invoice by mail twice. Find out when, before you change anything.", "Two sends of one message: a retry after a time-out that was none, or two workers.",
     "postbox/worker.py", "def send", 88, "smtp.send(message)", "log.info(\"send %s\", message.id)\nsmtp.send(message)", "test_worker",
     "Whenever the relay takes longer than 30 s for its final answer: the worker gives up and puts the message back, while the relay has already accepted it."),
    ("Show me that with a test first.", "A relay that accepts after 31 s. Time must be simulated.",
     "postbox/clock.py", "class Clock", 7, "return time.monotonic()", "return self.now()", "test_slow_relay",
     "`test_slow_relay` fails: two deliveries of one message. It needs 0.02 s, since the clock is simulated."),
    ("Good. Now fix it.", "The state between DATA and the answer is unknown; a message in that state must not be sent again without a look.",
     "postbox/queue.py", "def give_back", 120, "self.put(message)", "message.state = State.UNKNOWN\nself.hold(message)", "test_slow_relay",
     "A message without a final answer is `unknown` and held for an hour. The test passes."),
    ("Who decides about held messages?", "The relay logs accepted ids. Ask it before sending again.",
     "postbox/relay.py", "def accepted", 33, "raise NotImplementedError", "return message_id in self.journal(since)", "test_relay",
     "After the hour the worker asks the journal of the relay. Accepted: done. Not there: sent again."),
    ("Two workers took the same message on Monday as well.", "Select and update in two statements. It needs `for update skip locked`.",
     "postbox/store.py", "def take", 51, "select * from queue limit 1", "select * from queue limit 1 for update skip locked", "test_store",
     "Taking a message is one statement now. With 16 workers and 10,000 messages each is taken once."),
    ("The tests use SQLite, which has no `skip locked`.", "Then the tests test something else. Run them against Postgres in a container.",
     "tests/conftest.py", "def database", 9, "sqlite3.connect(\":memory:\")", "postgres.connect(container.url)", "test_store",
     "The suite starts a Postgres of its own: 4 s more, and it found one wrong type."),
    ("Bounces are counted per message. They should count per address.", "A bounce names the recipient; count there, and stop after three.",
     "postbox/bounce.py", "def count", 17, "message.bounces += 1", "address.bounces += 1", "test_bounce",
     "Three bounces within a week stop an address, not a message."),
    ("What about full mailboxes? They recover.", "452 and 552 are temporary in practice. They should not count.",
     "postbox/bounce.py", "PERMANENT", 4, "range(500, 600)", "set(range(500, 600)) - {552}", "test_bounce_full",
     "552 counts as temporary: tried for three days, and never a reason to stop an address."),
    ("Now the retry times. Every 5 minutes for ever is rude.", "Doubling from one minute to six hours, with jitter.",
     "postbox/retry.py", "def next_try", 11, "return 300", "return min(60 * 2 ** tries, 21600) * jitter()", "test_retry",
     "1, 2, 4 minutes and so on up to 6 hours, each shifted by up to 10 %."),
    ("Also after three days give up and tell the sender.", "A report as in RFC 3464.",
     "postbox/report.py", "def undelivered", 25, "pass", "return delivery_status(message, reason)", "test_report",
     "The sender gets a delivery status notification with the last answer of the relay."),
    ("Metrics: how many are held, how old is the oldest?", "Two gauges, read from the table each 15 s.",
     "postbox/metrics.py", "GAUGES", 6, "[\"queued\"]", "[\"queued\", \"held\", \"oldest_held_seconds\"]", "test_metrics",
     "`held` and `oldest_held_seconds` are exported. I suggest an alarm at 2 hours."),
    ("The dashboard shows negative ages.", "Clock of the database and of the worker differ. Use one.",
     "postbox/metrics.py", "def age", 31, "time.time() - row.since", "row.database_now - row.since", "test_metrics_age",
     "Ages are computed by the database. They cannot be negative any more."),
    ("Roll it out behind a switch, please: hold_unknown.", "Off means as before; the switch is read for each message.",
     "postbox/settings.py", "class Settings", 14, "workers: int = 16", "workers: int = 16\nhold_unknown: bool = False", "test_settings",
     "`hold_unknown` is off by default and may be changed while workers run."),
    ("Staging has it since this morning. Look at its log: anything odd?", "Search for held messages that were sent anyway.",
     "postbox/worker.py", "def release", 140, "if self.accepted(message):", "if self.relay.accepted(message.id):", "test_release",
     "14 messages were held, 13 had been accepted, 1 was sent again. One oddity: `release` asked the wrong object and always got no. Fixed."),
    ("Good catch. Does production have messages from before that must be released?", "A query, read only.",
     "postbox/queries.py", "HELD", 22, "state = 'unknown'", "state = 'unknown' and since < now() - interval '1 hour'", "test_queries",
     "None: the switch was never on in production."),
    ("Turn it on for the test customer only.", "The switch needs a list of customers.",
     "postbox/settings.py", "def holds", 29, "return self.hold_unknown", "return self.hold_unknown or customer in self.hold_for", "test_settings_for",
     "`hold_for` takes customer numbers. The test customer is in it on production, nobody else."),
    ("Write down how to roll back.", "Three commands, in the runbook.",
     "postbox/admin.py", "def release_all", 77, "raise SystemExit(1)", "return store.release(State.UNKNOWN)", "test_admin",
     "The runbook has: switch off, `postbox admin release-all`, restart nothing. Tried on staging."),
    ("Last thing for today: when do we remove the switch?", "After two weeks without a duplicate.",
     "postbox/settings.py", "hold_for", 31, "hold_for: set[int]", "# Remove both by the end of June, see runbook.\nhold_for: set[int]", "test_settings_end",
     "I noted it beside the setting: end of June, if no invoice was delivered twice until then. Shall I open an issue for it?"),
]

TIDE = [
    ("On phones the labels of the tide chart overlap. Screenshot follows.", "Labels are placed at fixed distances. Measure them instead.",
     "src/chart/labels.ts", "placeLabels", 14, "const step = 6;", "const step = Math.ceil(widest / (width / count));", "labels",
     "Labels are now as far apart as the widest one needs. At 360 px there is one every 8 hours."),
    ("High water must always have its label.", "Place the extremes first, then fill the gaps.",
     "src/chart/labels.ts", "extremes", 40, "return hours.filter(every(step));", "return [...extremes, ...hours.filter(free(extremes, step))];", "labels-extremes",
     "High and low water come first; hours fill what is left."),
    ("The curve has corners at night, when there are fewer readings.", "Linear between points. A monotone cubic does not overshoot.",
     "src/chart/curve.ts", "curve", 9, "d3.curveLinear", "d3.curveMonotoneX", "curve",
     "The curve is smooth and never higher than the readings."),
    ("Use three agents: find all places that format a time, a height and a unit. I want one function each.", "Independent searches, so agents can do them side by side.",
     "src/format.ts", "export function", 1, "export const time = (t: Date) => t.toString();", "export const time = (t: Date, zone: string) => formatter(zone).format(t);", "format",
     "There is one function each for time, height and unit, and 31 places use them."),
    ("Feet for harbours in the US.", "The unit belongs to the harbour, not to the browser.",
     "src/harbour.ts", "unit", 21, "unit: 'm',", "unit: country === 'US' ? 'ft' : 'm',", "harbour",
     "The unit is that of the harbour. People can change it, and it is kept."),
    ("Dark mode: the grid is too bright.", "Grid lines have a fixed grey.",
     "src/theme.ts", "grid", 12, "grid: '#cccccc',", "grid: 'var(--line)',", "theme",
     "The grid follows the theme; contrast is 1.6 in both."),
    ("Is the page usable with a keyboard?", "Focus order and the chart itself: arrows should move the reading.",
     "src/chart/keys.ts", "onKey", 5, "return;", "move(event.key === 'ArrowRight' ? 1 : -1);", "keys",
     "Left and right move along the curve, and a screen reader says time and height."),
    ("Then deploy the preview.", "npm run preview, then look at the address.",
     "src/preview.ts", "address", 3, "export const address = '';", "export const address = process.env.PREVIEW ?? '';", "preview",
     "The preview is up at tide-chart-labels.preview.example. Lighthouse: 98 for access, 91 for speed."),
]

NIGHTLY = "You are the nightly triage of kiln. Read the open reports, group the duplicates, and write one paragraph about each group."
NIGHTS = [
    ("feeds", "Three reports are about feeds: all have the date of the build. One group, fixed on `incremental`."),
    ("watcher", "Two reports: the watcher builds twice. One group, with helix and vim."),
    ("themes", "One report: the dark theme of the example site. No duplicates."),
    ("windows paths", "Four reports with backslashes in links. One group."),
    ("unicode slugs", "Two reports: slugs of Greek titles are empty. One group."),
    ("memory", "One report: 2 GB for 40,000 pages. No duplicates."),
    ("drafts", "Three reports about drafts in feeds, two groups."),
    ("search index", "Two reports, both want a search index without JavaScript. One group."),
    ("quiet night", "No report since yesterday."),
]


def kiln(root):
    s = Session(root, "kiln", f"{HOME}/src/kiln", "incremental", "2026-05-11T08:02:10")
    for number, change in enumerate(KILN):
        s.step(change)
        if number == 1:
            s.prompt("Please keep a list of what is left.", 40)
            s.answer(s.todos(("x", "Compare digests"), ("x", "Templates"), (">", "Data files"), (" ", "Deleted pages"), (" ", "Parallel builds")))
            s.answer(("text", "Three are left. Data files are next."))
            s.end_turn()
    s.title("Incremental builds: digests instead of times")
    s.save()


def postbox(root):
    s = Session(root, "postbox", f"{HOME}/work/billing/postbox", "hold-unknown", "2026-05-12T07:30:00")
    for change in POST[:7]:
        s.step(change)
    s.compact("auto", 167_420, 9_310, 4, "Summary of the conversation so far.\n\n"
              "1. Request: some customers get the same invoice twice. Find the cause first, then fix it.\n"
              "2. Cause: a relay that answers after 30 s has accepted the message, and the worker sends it again (`postbox/worker.py`). On Monday two workers also took the same message.\n"
              "3. Done: held state `unknown`, the journal of the relay is asked after an hour, `for update skip locked`, tests against Postgres, bounces per address.\n"
              "4. Next: full mailboxes, retry times, giving up after three days.")
    for change in POST[7:13]:
        s.step(change)
    s.compact("manual", 121_900, 7_845, 4, "Summary of the conversation so far.\n\n"
              "1. Request: no invoice twice. The cause was fixed in the first part (held state `unknown`).\n"
              "2. Since then: 552 is temporary, retries double up to 6 hours, a report after three days, metrics `held` and `oldest_held_seconds`, the switch `hold_unknown` (off by default).\n"
              "3. Next: staging, then production.")
    for change in POST[13:]:
        s.step(change)
    s.title("Invoices that are mailed twice")
    s.save()


def tide(root):
    s = Session(root, "tide", f"{HOME}/src/tide-chart", "main", "2026-05-13T15:10:00", "claude-opus-4-5-20251101")
    s.step(TIDE[0])
    image = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(30_000)).decode()
    s.prompt([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": image}},
              {"type": "text", "text": "This is the screenshot: an iPhone SE, Brest, last night."}], 25)
    s.answer(("text", "`22:00` and `23:00` share 40 pixels there, and 23:41 is high water without a label. Both have the same cause."))
    s.end_turn()
    for change in TIDE[1:3]:
        s.step(change)
    before = s.parent
    s.prompt("Could the chart be drawn on the server?", 50)
    s.answer(("thinking", "Possible, but then touch does not work. Say so."), ("text", "Yes, as SVG. Zooming and the reading under the finger would then need a request each. I would keep it in the browser."))
    s.end_turn()
    s.parent = before
    name, thought = TIDE[3][:2]
    s.prompt(name, 70)
    results = []
    for agent, what, found in (("a51c07e2", "time", 14), ("a7f3960d", "height", 9), ("a09be4c8", "unit", 8)):
        sub = Session(root, agent, s.folder, s.branch, s.clock.isoformat(), s.model, agent=s)
        task = f"List every place below src that formats a {what}. File, line, and what it prints."
        sub.prompt(task, 0)
        for part in range(3):
            sub.answer(("text", f"Part {part + 1} of 3: {('components', 'charts', 'pages')[part]}."),
                       sub.grep(what, *[f"src/{('components', 'chart', 'pages')[part]}/{what}{i}.ts:{7 * i + part}: {what}(value)" for i in range(1, found // 3 + 1)]))
        sub.answer(("text", f"{found} places format a {what}, in {found // 2} files. Two of them round differently."))
        sub.save()
        answer = [{"type": "text", "text": f"{found} places format a {what}, in {found // 2} files. Two of them round differently."}]
        results.append(("Agent", {"description": f"Find where a {what} is formatted", "prompt": task, "subagent_type": "Explore"},
                        answer, {"status": "completed", "agentId": agent, "prompt": task, "content": answer, "totalDurationMs": 21_000,
                                 "totalTokens": 18_300, "totalToolUseCount": 3}, 8))
    s.answer(("thinking", thought), *results)
    s.answer(("text", "31 places: 14 times, 9 heights, 8 units. I write the three functions and replace them."),
             s.edit(TIDE[3][2], ("// format", "// end"), TIDE[3][5], TIDE[3][6], 1))
    s.answer(s.bash("npm test", "\x1b[32m✓\x1b[0m 64 tests passed", 9))
    s.answer(("text", TIDE[3][8]))
    s.end_turn()
    for change in TIDE[4:]:
        s.step(change)
    s.title("Tide chart: labels, units, keyboard")
    s.save()


def nightly(root):
    for number, (word, answer) in enumerate(NIGHTS):
        s = Session(root, f"night {number}", f"{HOME}/src/kiln", "main", f"2026-05-{2 + number:02}T02:00:00", "claude-haiku-4-5-20251001")
        s.prompt(NIGHTLY, 0)
        s.answer(s.bash("gh issue list --label report", f"{number + 1}\t{word}"))
        s.answer(("text", answer))
        s.end_turn()
        s.save()


def write(root):
    root = pathlib.Path(root)
    for part in (kiln, postbox, tide, nightly):
        part(root)


def main(about, out, made):
    """the command line of a script that writes `out`: the text that `made` gives for the folder of the sessions and a binary"""
    root = pathlib.Path(__file__).resolve().parent.parent
    a = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--check", action="store_true", help=f"only compare with {out.relative_to(root)}")
    a.add_argument("--bin", default=root / "target/release/transcript", type=pathlib.Path)
    a.add_argument("--out", default=out, type=pathlib.Path)
    o = a.parse_args()
    with tempfile.TemporaryDirectory(prefix="tour-") as folder:
        folder = pathlib.Path(folder)
        write(folder)
        text = made(folder, o.bin.resolve())
    if not o.check:
        o.out.parent.mkdir(exist_ok=True)
        o.out.write_text(text)
        return
    old = o.out.read_text() if o.out.exists() else ""
    sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), text.splitlines(True), str(o.out), "now"))
    sys.exit(old != text)
