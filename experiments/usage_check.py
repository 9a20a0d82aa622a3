#!/usr/bin/env python3
"""Checks `transcript usage` against a slow count of its own, and compares it with ccusage.

    usage_check.py count ROOT --bin TRANSCRIPT --prices LITELLM.json [OLDER.json ...]
    usage_check.py random FIRST LAST --bin TRANSCRIPT --prices LITELLM.json [OLDER.json ...]
    usage_check.py fixtures --bin TRANSCRIPT --ccusage CCUSAGE
    usage_check.py speed ROOT --bin TRANSCRIPT [--ccusage CCUSAGE] [--rounds N]

`count` implements docs/usage.md a second time, in the most obvious way, and compares every row of several
reports. Branches follow from the tree, which it does not build: of them only the sums are compared. `random` does
the same for generated trees with these seeds: forks, copies, subagents, growing and missing counts, damaged lines.
"""

import argparse
import datetime
import glob
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from fractions import Fraction

COUNTS = ["input", "output", "cacheWrite5m", "cacheWrite1h", "cacheRead", "webSearch"]
NOW = datetime.timezone.utc


def number(value):
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return value if is_count and 0 <= value <= 2**53 else None


def text(value):
    return value if isinstance(value, str) else ""


def obj(value):
    return value if isinstance(value, dict) else {}


def entries(path):
    """Yields offset and entry. Of damaged lines it takes every whole object that has a type."""
    offset = 0
    decoder = json.JSONDecoder()
    for raw in open(path, "rb").read().split(b"\n"):
        start, offset = offset, offset + len(raw) + 1
        line = raw.decode("utf-8", "replace").strip("\0 \t\r\ufeff")
        try:
            entry = json.loads(line)
            if isinstance(entry, dict):
                yield start, entry
            continue
        except ValueError:
            pass
        at = line.find("{")
        while at >= 0:
            try:
                entry, end = decoder.raw_decode(line, at)
            except ValueError:
                at = line.find("{", at + 1)
                continue
            if isinstance(entry, dict) and "type" in entry and ("message" in entry or "uuid" in entry):
                yield start + len(line[:at].encode()), entry
                at = line.find("{", end)
            else:
                at = line.find("{", at + 1)


def counts(usage):
    usage = obj(usage)
    nested, tools = obj(usage.get("cache_creation")), obj(usage.get("server_tool_use"))
    return [
        number(usage.get("input_tokens")), number(usage.get("output_tokens")),
        number(usage.get("cache_creation_input_tokens")), number(nested.get("ephemeral_5m_input_tokens")),
        number(nested.get("ephemeral_1h_input_tokens")), number(usage.get("cache_read_input_tokens")),
        number(tools.get("web_search_requests")), number(tools.get("web_fetch_requests")),
    ]


def larger(one, other):
    return [max((n for n in pair if n is not None), default=None) for pair in zip(one, other)]


def tokens(c, searches=0):
    n = [0 if count is None else count for count in c]
    five = n[3] + max(0, n[2] - n[3] - n[4])
    return {"input": n[0], "output": n[1], "cacheWrite5m": five, "cacheWrite1h": n[4], "cacheRead": n[5],
            "webSearch": n[6] + searches}


def prompt(t):
    return t["input"] + t["cacheWrite5m"] + t["cacheWrite1h"] + t["cacheRead"]


def millis(stamp):
    try:
        when = datetime.datetime.fromisoformat(text(stamp).replace("Z", "+00:00"))
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=NOW)
    return (when - datetime.datetime(1970, 1, 1, tzinfo=NOW)) // datetime.timedelta(milliseconds=1)


def copies(path, session, agent):
    """Returns the copies of requests in a file, by key, and its boundaries."""
    found, results, boundaries, lone = {}, {}, [], 0
    for offset, entry in entries(path):
        kind, message = entry.get("type"), entry.get("message")
        if kind == "system" and entry.get("subtype") == "compact_boundary":
            boundaries.append((offset, millis(entry.get("timestamp"))))
        if kind == "user" and isinstance(message, dict):
            searches = number(obj(entry.get("toolUseResult")).get("searchCount"))
            blocks = message.get("content") if isinstance(message.get("content"), list) else []
            blocks = [b for b in blocks if isinstance(b, dict) and b.get("type") == "tool_result"]
            if searches and blocks:
                call = text(blocks[0].get("tool_use_id"))
                results[call] = max(searches, results.get(call, 0))
        if kind != "assistant" or not isinstance(message, dict):
            continue
        usage, key = message.get("usage"), text(message.get("id"))
        if message.get("model") == "<synthetic>" or not key and not isinstance(usage, dict):
            continue
        uuid = text(entry.get("uuid"))
        lone += 1
        key = ("id", key) if key else ("uuid", uuid) if uuid else ("line", path, lone)
        when = millis(entry.get("timestamp"))
        copy = found.get(key)
        if copy is None:
            copy = found[key] = {
                "path": path, "session": session, "file_agent": agent, "offset": offset, "first": when, "time": when,
                "forked": isinstance(entry.get("forkedFrom"), dict), "side": entry.get("isSidechain") is True,
                "own": text(entry.get("sessionId")) == session, "stop": False, "counts": [None] * 8, "model": "",
                "agent": text(entry.get("agentId")), "git": text(entry.get("gitBranch")), "calls": {}, "steps": None,
                "terms": ["", "", ""],
            }
        times = [t for t in (copy["time"], when) if t is not None]
        copy["time"] = min(times) if times else None
        copy["stop"] |= isinstance(message.get("stop_reason"), str)
        copy["counts"] = larger(copy["counts"], counts(usage))
        copy["model"] = copy["model"] or text(message.get("model"))
        usage = obj(usage)
        for at, name in enumerate(("service_tier", "inference_geo", "speed")):
            copy["terms"][at] = text(usage.get(name)) or copy["terms"][at]
        steps = [s for s in usage.get("iterations") or [] if isinstance(s, dict)]
        if steps:
            output = number(usage.get("output_tokens"))
            output = -1 if output is None else output
            if copy["steps"] is None or output > copy["steps"][0]:
                copy["steps"] = (output, steps)
        for at, block in enumerate(message.get("content") if isinstance(message.get("content"), list) else []):
            if isinstance(block, dict) and block.get("type") in ("tool_use", "server_tool_use", "mcp_tool_use"):
                copy["calls"].setdefault(text(block.get("id")) or (offset, at), text(block.get("name")))
    for copy in found.values():
        # A call that two requests have is that of the first.
        copy["searches"] = sum(results.pop(call, 0) for call in copy["calls"])
    return found, boundaries


class Prices:
    """Prices of the LiteLLM file, as fractions."""

    def __init__(self, paths):
        self.rows = {}
        for path in paths:
            for name, row in json.load(open(path), parse_float=Fraction).items():
                self.rows.setdefault(name, row)

    def cost(self, model, t, terms):
        if not any(t.values()):
            return 0
        row = self.rows.get(model) or self.rows.get(model.removesuffix("[1m]"))
        if row is None:
            return None
        bands = sorted(int(key.split("_above_")[1][:-8]) for key in row
                       if key.startswith("input_cost_per_token_above_") and key.endswith("k_tokens"))
        passed = [band for band in bands if prompt(t) > band * 1000]
        suffix = f"_above_{passed[-1]}k_tokens" if passed else ""
        tier = {"batch": "_batches", "flex": "_flex", "priority": "_priority"}.get(terms[0], "")
        total = Fraction(0)
        keys = {"input": "input_cost_per_token", "output": "output_cost_per_token",
                "cacheWrite5m": "cache_creation_input_token_cost",
                "cacheWrite1h": "cache_creation_input_token_cost_above_1hr",
                "cacheRead": "cache_read_input_token_cost"}
        for count, key in keys.items():
            if not t[count]:
                continue
            price = row.get(key + suffix + tier, row.get(key + suffix, row.get(key + tier, row.get(key))))
            if price is None:
                return None
            total += Fraction(price) * t[count]
        factors = obj(row.get("provider_specific_entry"))
        geos = {name: factor for name, factor in factors.items() if name != "fast"}
        # Where there are no tokens, no multiplier is needed.
        if total and geos and terms[1] not in ("", "global", "not_available"):
            if terms[1] not in geos:
                return None
            total *= Fraction(geos[terms[1]])
        if total and terms[2] == "fast":
            # A speed that is sold has a price.
            if "fast" not in factors:
                return None
            total *= Fraction(factors["fast"])
        if t["webSearch"]:
            search = obj(row.get("search_context_cost_per_query")).get("search_context_size_medium")
            if search is None and row.get("litellm_provider") == "anthropic":
                # The price page has one for all models of Anthropic.
                search = Fraction(1, 100)
            if search is None:
                return None
            total += Fraction(search) * t["webSearch"]
        return int(total * 10**9 + Fraction(1, 2))


def slow(root, prices):
    """Returns every part of every request: what it belongs to, its counts, its cost."""
    groups, boundaries, found_files = defaultdict(list), {}, []
    for project in sorted(glob.glob(glob.escape(root) + "/*/")):
        name = os.path.basename(project[:-1])
        for path in sorted(glob.glob(glob.escape(project) + "*.jsonl")):
            stem = os.path.basename(path)[:-6]
            if not stem.startswith("agent-"):
                found_files.append((path, stem, None, name))
        for path in sorted(glob.glob(glob.escape(project) + "*/subagents/agent-*.jsonl")):
            session = path.split("/")[-3]
            found_files.append((path, session, os.path.basename(path)[6:-6], name))
        for path in sorted(glob.glob(glob.escape(project) + "agent-*.jsonl")):
            first = next((e for _, e in entries(path) if text(e.get("sessionId"))), {})
            found_files.append((path, text(first.get("sessionId")), os.path.basename(path)[6:-6], name))
    for path, session, agent, project in found_files:
        found, at = copies(path, session, agent)
        if agent is None:
            boundaries[project, session] = at
        for key, copy in found.items():
            copy["project"] = project
            groups[key].append(copy)
    for group in groups.values():
        group.sort(key=lambda c: (c["forked"], c["file_agent"] is not None, c["side"], not c["own"],
                                  c["first"] is None, c["first"], c["path"].encode()))
        owner, merged = group[0], [None] * 8
        for copy in group:
            merged = larger(merged, copy["counts"])
        model = next((c["model"] for c in group if c["model"]), "")
        calls = max(group, key=lambda c: len(c["calls"]))["calls"]
        steps = max(group, key=lambda c: len(c["steps"][1]) if c["steps"] else 0)["steps"]
        steps = steps[1] if steps else []
        t = tokens(merged, max(c["searches"] for c in group))
        is_side = lambda s: text(s.get("type")) in ("compaction", "advisor_message") or text(s.get("model")) not in ("", model)
        own = [tokens(counts(s)) for s in steps if not is_side(s)]
        sums = lambda name: sum(s[name] for s in own)
        alike = all(sums(n) == t[n] for n in ("input", "output", "cacheRead")) and sum(map(prompt, own)) == prompt(t)
        if len(own) > 1 and alike:
            own[0]["webSearch"] = t["webSearch"]
            parts = [prices.cost(model, s, owner["terms"]) for s in own]
            cost = None if None in parts else sum(parts)
        else:
            cost = prices.cost(model, t, owner["terms"])
        incomplete = (not any(c["stop"] for c in group) or prompt(t) <= 1 or merged[0] is None or merged[1] is None)
        when = owner["time"]
        day = datetime.datetime.fromtimestamp(when // 1000, NOW).strftime("%Y-%m-%d") if when is not None else None
        agent = owner["file_agent"] or owner["agent"] or ("sidechain" if owner["side"] else None)
        of_session = boundaries.get((owner["project"], owner["session"]))
        if owner["file_agent"] is None:
            compaction = sum(offset < owner["offset"] for offset, _ in of_session)
        elif of_session is None or when is None:
            compaction = None
        else:
            compaction = sum(at is not None and at < when for _, at in of_session)
        calls_of = [(model, t, cost)] + [
            (text(s.get("model")) or model, tokens(counts(s)), prices.cost(text(s.get("model")) or model, tokens(counts(s)), owner["terms"]))
            for s in steps if is_side(s)]
        tools = list(calls.values()) or [None]
        for which, (of_model, of_tokens, of_cost) in enumerate(calls_of):
            for share, tool in enumerate(tools):
                part = lambda all: all // len(tools) + (share < all % len(tools))
                first = which == 0 and share == 0
                yield {
                    "day": day, "month": day and day[:7], "project": owner["project"], "session": owner["session"],
                    "model": of_model or None, "agent": agent, "git-branch": owner["git"] or None,
                    "compaction": compaction, "tool": tool or None, "requests": int(first),
                    "incomplete": int(first and incomplete), "counts": [part(of_tokens[n]) for n in COUNTS],
                    "cost": None if of_cost is None else part(of_cost),
                }


def reported(binary, root, by):
    command = [binary, "--root", root, "usage", "--json", "--no-cache", "--timezone", "UTC"]
    out = subprocess.run(command + (["--by", ",".join(by)] if by else []), capture_output=True, text=True)
    if out.returncode:
        sys.exit(out.stderr)
    rows = {}
    for line in out.stdout.splitlines():
        row = json.loads(line)
        if row["kind"] in ("row", "total"):
            key = "total"
            if row["kind"] == "row":
                key = tuple(row["by"][name] for name in by) + ((row["current"],) if "current" in row else ())
            rows[key] = [row["requests"], row["incomplete"]] + [row[name] for name in COUNTS] + [row["costNanoUsd"]]
    return rows


def generate(root, seed):
    """Writes sessions in which everything that matters is random."""
    r = random.Random(seed)
    models = ["claude-sonnet-4-5", "claude-opus-4-5", "claude-haiku-5-5", "owl-1", "claude-sonnet-4-5[1m]", "<synthetic>", ""]
    odd = [None, -1, 1.5, "7", 2**60, True, [], {}]
    pool, sessions = [], [f"{r.getrandbits(32):08x}-0000-4000-8000-000000000000" for _ in range(r.randint(1, 4))]
    count = lambda: r.choice(odd) if r.random() < 0.03 else r.choice([0, 1, r.randint(0, 300), r.randint(0, 150_000)])

    def usage():
        used = {"input_tokens": count(), "output_tokens": count(), "cache_read_input_tokens": count()}
        if r.random() < 0.7:
            used["cache_creation_input_tokens"] = count()
        if r.random() < 0.4:
            used["cache_creation"] = {"ephemeral_5m_input_tokens": count(), "ephemeral_1h_input_tokens": count()}
        if r.random() < 0.1:
            used["server_tool_use"] = {"web_search_requests": r.randint(0, 3), "web_fetch_requests": 1}
        if r.random() < 0.2:
            used["speed"], used["inference_geo"] = r.choice(["standard", "fast"]), r.choice(["us", "global", "not_available"])
        if r.random() < 0.15:
            steps = [{"type": "message", "input_tokens": r.randint(0, 9), "output_tokens": r.randint(0, 9)} for _ in range(r.randint(1, 3))]
            if r.random() < 0.5:
                used = {name: sum(s[name] for s in steps) for name in ("input_tokens", "output_tokens")}
            if r.random() < 0.6:
                steps.insert(r.randint(0, len(steps)), {"type": r.choice(["advisor_message", "compaction", "message"]),
                             "model": r.choice(models[:4]), "input_tokens": r.randint(0, 500), "output_tokens": r.randint(0, 50)})
            used["iterations"] = steps
        return used

    for session in sessions:
        project = os.path.join(root, r.choice(["-p", "-q"]))
        files = [os.path.join(project, session + ".jsonl")]
        for number in range(r.randint(0, 2)):
            files.append(os.path.join(project, session, "subagents", f"agent-a{number}.jsonl"))
        clock = r.randint(0, 10**6)
        for path in files:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            lines = []
            for _ in range(r.randint(0, 25)):
                clock += r.randint(0, 40_000)
                when = datetime.datetime(2026, 3, 1, tzinfo=NOW) + datetime.timedelta(seconds=clock)
                stamp = when.strftime("%Y-%m-%dT%H:%M:%S.000Z")
                entry = {"type": "assistant", "uuid": f"u{r.getrandbits(40)}", "parentUuid": None, "sessionId": session}
                if r.random() < 0.95:
                    entry["timestamp"] = stamp
                if "/subagents/" in path or r.random() < 0.05:
                    entry["isSidechain"] = True
                    if r.random() < 0.7:
                        entry["agentId"] = "a0"
                if r.random() < 0.5:
                    entry["gitBranch"] = r.choice(["main", "dev"])
                kind = r.random()
                if kind < 0.08:
                    entry = {"type": "system", "subtype": "compact_boundary", "uuid": entry["uuid"], "parentUuid": None, "timestamp": stamp}
                elif kind < 0.16:
                    call = r.choice([f"t{n}" for n in range(30)])
                    entry = {"type": "user", "uuid": entry["uuid"], "timestamp": stamp, "toolUseResult": {"searchCount": r.randint(0, 3)},
                             "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": "x"}]}}
                elif kind < 0.4 and pool:
                    copied = json.loads(json.dumps(r.choice(pool)))
                    if r.random() < 0.5:
                        copied["uuid"] = entry["uuid"]
                        copied["sessionId"] = session
                    if r.random() < 0.4:
                        copied["forkedFrom"] = {"sessionId": "x", "messageUuid": "y"}
                    if r.random() < 0.3:
                        copied["message"]["usage"] = usage()
                    if r.random() < 0.3:
                        copied["timestamp"] = stamp
                    entry = copied
                else:
                    tools = [{"type": r.choice(["tool_use", "server_tool_use"]), "id": f"t{r.randint(0, 29)}", "name": r.choice(["Bash", "Read", "WebSearch"]), "input": {}}
                             for _ in range(r.choice([0, 0, 1, 2, 3]))]
                    entry["message"] = {"role": "assistant", "content": [{"type": "text", "text": "x"}] + tools, "model": r.choice(models),
                                        "stop_reason": r.choice([None, "end_turn"])}
                    if r.random() < 0.85:
                        entry["message"]["id"] = f"m{r.randint(0, 60)}"
                    if r.random() < 0.93:
                        entry["message"]["usage"] = usage()
                    if r.random() < 0.1:
                        del entry["uuid"]
                    pool.append(entry)
                lines.append(json.dumps(entry, ensure_ascii=r.random() < 0.5).encode() + b"\n")
            for at in range(len(lines)):
                if r.random() < 0.02:
                    lines[at] = r.choice([lines[at][:-1], b'{"type":"assistant","message":{"id":"' + lines[at], b"\0" * 40 + lines[at], b"\n" + lines[at]])
            with open(path, "wb") as out:
                out.write(b"".join(lines))


def check_random(args):
    prices, bad = Prices(args.prices), 0
    for seed in range(args.first, args.last + 1):
        with tempfile.TemporaryDirectory() as root:
            generate(root, seed)
            if compare(list(slow(root, prices)), args.bin, root, KINDS, lambda _: None):
                bad += 1
                print(f"seed {seed} differs")
    print(f"{args.last - args.first + 1} trees, {bad} differ")
    return 1 if bad else 0


KINDS = [["day"], ["month"], ["project"], ["session"], ["model"], ["agent"], ["git-branch"], ["compaction"], ["tool"],
         ["session", "agent", "tool"], ["day", "model"]]


def check_count(args):
    parts = list(slow(args.root, Prices(args.prices)))
    bad = compare(parts, args.bin, args.root, KINDS, print)
    print(f"{sum(part['requests'] for part in parts)} requests, {bad} differences")
    return 1 if bad else 0


def compare(parts, binary, root, kinds, say):
    bad = 0
    for by in kinds:
        sums = defaultdict(lambda: [0] * 8 + [0, False])
        for part in parts:
            for key in (tuple(part[name] for name in by), "total"):
                row = sums[key]
                row[0] += part["requests"]
                row[1] += part["incomplete"]
                for at, count in enumerate(part["counts"]):
                    row[2 + at] += count
                if part["cost"] is None:
                    row[9] = True
                else:
                    row[8] += part["cost"]
        sums["total"][0] += 0
        known = set(sums)
        priced = defaultdict(bool)
        for part in parts:
            for key in (tuple(part[name] for name in by), "total"):
                priced[key] |= part["cost"] is not None
        slow_rows = {key: row[:8] + [row[8] if priced[key] or not row[9] else None] for key, row in sums.items()}
        theirs = reported(binary, root, by)
        for key in sorted(known | set(theirs), key=str):
            if slow_rows.get(key) != theirs.get(key):
                bad += 1
                print(f"{'+'.join(by)} {key}\n  slow {slow_rows.get(key)}\n  ours {theirs.get(key)}")
        say(f"{'+'.join(by)}: {len(theirs) - 1} rows compared")
    branches = reported(binary, root, ["branch"])
    total = branches.pop("total")
    total[8] = total[8] or 0
    added = [sum(row[at] or 0 for row in branches.values()) for at in range(9)]
    say(f"branch: {len(branches)} rows, {'add up' if added == total else 'DO NOT add up'}")
    return bad + (added != total)


def ccusage(command, folder):
    """Returns the counts of ccusage: input, output, cache writes, cache reads, dollars."""
    environment = dict(os.environ, CLAUDE_CONFIG_DIR=folder)
    out = subprocess.run([command, "claude", "session", "--offline", "--mode", "calculate", "--json"],
                         capture_output=True, text=True, env=environment)
    try:
        sessions = json.loads(out.stdout)["sessions"]
    except (ValueError, KeyError):
        return [0, 0, 0, 0, 0.0]
    sums = lambda name: sum(session[name] for session in sessions)
    names = ["inputTokens", "outputTokens", "cacheCreationTokens", "cacheReadTokens", "totalCost"]
    return [sums(name) for name in names]


def check_fixtures(args):
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", "v1", "usage")
    show = lambda c, cost: f"{c[0]} / {c[1]} / {c[2]} / {c[3]} / {cost}"
    print("| fixture | right: input / output / cache write / read / USD | transcript | ccusage |\n| --- | --- | --- | --- |")
    right = [0, 0]
    for name in sorted(os.listdir(here)):
        folder = os.path.join(here, name)
        if not os.path.isdir(folder):
            continue
        want = json.load(open(os.path.join(folder, "expected.json")))
        command = [args.bin, "--root", folder + "/projects", "usage", "--json", "--no-cache"]
        ours = json.loads(subprocess.run(command, capture_output=True, text=True).stdout.splitlines()[-1])
        counted = lambda row: [row["input"], row["output"], row["cacheWrite5m"] + row["cacheWrite1h"], row["cacheRead"]]
        nano = lambda cost: "unknown" if cost is None else f"{cost / 1e9:.6f}"
        theirs = ccusage(args.ccusage, folder)
        same = [counted(ours) == counted(want) and ours["costNanoUsd"] == want["costNanoUsd"] and ours["incomplete"] == want["incomplete"],
                theirs[:4] == counted(want) and round(theirs[4] * 1e9) == want["costNanoUsd"]]
        right = [n + is_right for n, is_right in zip(right, same)]
        mark = lambda is_right: "right" if is_right else "**wrong**"
        print(f"| {name} | {show(counted(want), nano(want['costNanoUsd']))} | {mark(same[0])}"
              f"{'' if same[0] else ': ' + show(counted(ours), nano(ours['costNanoUsd']))} | {mark(same[1])}"
              f"{'' if same[1] else ': ' + show(theirs, f'{theirs[4]:.6f}')} |")
    print(f"\nright: transcript {right[0]}, ccusage {right[1]}")
    return 0


def timed(command, environment):
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    _, _, used = os.wait4(process.pid, 0)
    return time.perf_counter() - start, used.ru_maxrss / 1024


def check_speed(args):
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as config:
        os.symlink(os.path.abspath(args.root), os.path.join(config, "projects"))
        environment = dict(os.environ, XDG_CACHE_HOME=cache, CLAUDE_CONFIG_DIR=config)
        ours = [args.bin, "usage", "--by", "day,model", "--json"]
        rows = {"no cache": ours + ["--no-cache"], "with cache": ours, "status line": [args.bin, "usage", "--statusline"]}
        if args.ccusage:
            rows["ccusage daily"] = [args.ccusage, "claude", "daily", "--offline", "--mode", "calculate", "--json"]
        taken = {name: [] for name in rows}
        timed(ours, environment)
        for _ in range(args.rounds):
            for name, command in rows.items():
                taken[name].append(timed(command, environment))
        size = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(args.root) for name in names)
        print(f"{size / 1e6:.0f} MB, {args.rounds} rounds, median (peak)")
        for name, values in taken.items():
            seconds = statistics.median(second for second, _ in values)
            print(f"{name}: {seconds * 1000:.0f} ms ({max(peak for _, peak in values):.0f} MiB)")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("count", "random", "fixtures", "speed"):
        one = commands.add_parser(name)
        if name == "random":
            one.add_argument("first", type=int)
            one.add_argument("last", type=int)
        elif name != "fixtures":
            one.add_argument("root")
        one.add_argument("--bin", default="target/release/transcript")
        if name in ("count", "random"):
            one.add_argument("--prices", nargs="+", required=True)
        else:
            one.add_argument("--ccusage", required=name == "fixtures")
            one.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return {"count": check_count, "random": check_random, "fixtures": check_fixtures, "speed": check_speed}[args.command](args)


if __name__ == "__main__":
    sys.exit(main())
