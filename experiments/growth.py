#!/usr/bin/env python3
"""experiments/growth.py [--bin PATH] [--sizes N,N,N] [--group NAMES] [--only SHAPES] [--command TEXT] [--quiet]

Makes sessions of hostile and of plain shapes at several sizes, runs commands on them, and prints the processor time (user and system), the peak
memory, and the factor by which the time grows with each doubling of the size: about 2 is linear, 4 is quadratic. Times too short to
compare (under --least seconds) have no factor. A command that exceeds the time limit is killed and counts as failed. Exits with 1 if a factor is above
--most or a command fails. Needs only Python."""
import argparse, json, math, os, sys, tempfile, time

def uid(n):
    return "%08x-0000-4000-8000-%012x" % (n & 0xffffffff, n)


def stamp(n):
    return time.strftime("2026-01-%02dT%%H:%%M:%%S" % (1 + n // 86400 % 28), time.gmtime(n % 86400)) + ".%03dZ" % (n % 1000)


def line(n, parent, kind="user", content="words", **more):
    message = {"role": kind, "content": content}
    if kind == "assistant":
        message = {"id": more.pop("id", "msg_%d" % n), "type": "message", "model": "m", **message}
    d = {"parentUuid": parent if parent is None or isinstance(parent, str) else uid(parent), "isSidechain": False, "type": kind,
         "message": message, "uuid": uid(n), "timestamp": stamp(n), "sessionId": uid(7)}
    d.update(more)
    return json.dumps(d, separators=(",", ":"))


def text(s="words"):
    return [{"type": "text", "text": s}]


def call(n, name="Read"):
    return [{"type": "tool_use", "id": "call_%d" % n, "name": name, "input": {"path": "a"}}]


def result(n):
    return [{"type": "tool_result", "tool_use_id": "call_%d" % n, "content": "done"}]


def kind(n):
    return "assistant" if n % 2 else "user"


# Shapes of trees: N lines.

def chain(n):
    for i in range(n):
        yield line(i, i - 1 if i else None, kind(i), text())


def star(n):
    yield line(0, None)
    for i in range(1, n):
        yield line(i, 0, kind(i), text())


def comb(n):
    for i in range(n // 2):
        yield line(2 * i, 2 * i - 2 if i else None, kind(i), text())
        yield line(2 * i + 1, 2 * i, kind(i + 1), text())


def roots(n):
    for i in range(n):
        yield line(i, None, "user", text("prompt %d" % i))


def lost(n):
    """the parent of each entry is in no line"""
    for i in range(n):
        yield line(i, uid(10 ** 9 + i), kind(i), text())


def components(n):
    """chains of four, each with a lost parent"""
    for i in range(n):
        yield line(i, i - 1 if i % 4 else uid(10 ** 9 + i), kind(i), text())


def same_uuid(n):
    for i in range(n):
        yield line(1, None, "user", text("take %d" % i))


def same_message(n):
    yield line(0, None)
    for i in range(1, n):
        yield line(i, i - 1, "assistant", text(), id="msg_one")


def parallel(n):
    """one message with all the calls, without results"""
    yield line(0, None)
    for i in range(1, n):
        yield line(i, i - 1, "assistant", call(i), id="msg_one")


def parallel_results(n):
    half = n // 2
    yield line(0, None)
    for i in range(1, half):
        yield line(i, i - 1, "assistant", call(i), id="msg_one")
    for i in range(1, half):
        yield line(half + i, i, "user", result(i))


def parallel_reversed(n):
    half = n // 2
    yield line(0, None)
    for i in range(1, half):
        yield line(i, i - 1, "assistant", call(i), id="msg_one")
    last = half - 1
    for i in range(half - 1, 0, -1):
        yield line(half + i, last, "user", result(i))
        last = half + i


def one_call(n):
    """all results for one call"""
    yield line(0, None)
    yield line(1, 0, "assistant", call(1))
    for i in range(2, n):
        yield line(i, i - 1, "user", result(1))


def one_call_star(n):
    yield line(0, None)
    yield line(1, 0, "assistant", call(1))
    for i in range(2, n):
        yield line(i, 1, "user", result(1))


def calls_of_one_id(n):
    """messages that all make a call with the same id, and results for it"""
    half = n // 2
    yield line(0, None)
    for i in range(1, half):
        yield line(i, i - 1, "assistant", call(1), id="m%d" % i)
    for i in range(half, n):
        yield line(i, 1, "user", result(1))


def star_of_one_message(n):
    yield line(0, None)
    for i in range(1, n):
        yield line(i, 0, "assistant", call(i), id="msg_one")


def boundary_on_each_branch(n):
    """branches off what a compaction hides, each with a compaction of its own"""
    half = n // 4
    for i in range(half):
        yield line(i, i - 1 if i else None, kind(i), text())
    for i in range(half, n - 2, 3):
        yield line(i, half - 1, "user", text())
        yield json.dumps({"parentUuid": uid(i), "type": "system", "subtype": "compact_boundary", "content": "c", "uuid": uid(i + 1),
                          "timestamp": stamp(i), "sessionId": uid(7), "isSidechain": False, "compactMetadata": {"trigger": "auto", "preTokens": 9}})
        yield line(i + 2, i + 1, "user", text("summary"), isCompactSummary=True)


def boundaries(n):
    for i in range(0, n - 1, 2):
        yield line(i, i - 1 if i else None, "user", text())
        yield json.dumps({"parentUuid": None, "logicalParentUuid": uid(i), "type": "system", "subtype": "compact_boundary", "content": "c",
                          "uuid": uid(i + 1), "timestamp": stamp(i), "sessionId": uid(7), "isSidechain": False,
                          "compactMetadata": {"trigger": "auto", "preTokens": 9}})
    yield line(n, n - 1 - n % 2, "user", text())


def kept(n):
    """boundaries that each preserve the whole list of earlier entries of this round"""
    for i in range(0, n - 4, 5):
        yield line(i, i - 1 if i else None, "user", text())
        yield line(i + 1, i, "assistant", text())
        yield json.dumps({"parentUuid": None, "logicalParentUuid": uid(i + 1), "type": "system", "subtype": "compact_boundary", "content": "c",
                          "uuid": uid(i + 2), "timestamp": stamp(i), "sessionId": uid(7), "isSidechain": False,
                          "compactMetadata": {"trigger": "auto", "preTokens": 9, "preservedSegment":
                                              {"headUuid": uid(i), "anchorUuid": uid(i + 3), "tailUuid": uid(i + 1)}}})
        yield line(i + 3, i + 2, "user", text("summary"), isCompactSummary=True)
        yield line(i + 4, i + 3, "assistant", text())


def pins(n):
    yield from chain(n // 2)
    for i in range(n // 2):
        yield json.dumps({"type": "last-prompt", "lastPrompt": "p", "leafUuid": uid(i), "sessionId": uid(7), "explicit": True})


def pins_lost(n):
    yield from chain(n // 2)
    for i in range(n // 2):
        yield json.dumps({"type": "last-prompt", "lastPrompt": "p", "leafUuid": uid(10 ** 9 + i), "sessionId": uid(7)})


def tombstones(n):
    yield from chain(n // 2)
    for i in range(n // 4, n // 2):
        yield json.dumps({"type": "transcriptEngine", "v": 1, "tombstone": uid(i)})


def attachment(i, parent, **more):
    a = {"type": "hook_success", "hookName": "h", "content": "words", "toolUseID": "call_1", "hookEvent": "PostToolUse"}
    a.update(more)
    return json.dumps({"parentUuid": uid(parent), "isSidechain": False, "type": "attachment", "attachment": a, "uuid": uid(i),
                       "timestamp": stamp(i), "sessionId": uid(7)})


REMINDER = {"type": "critical_system_reminder", "content": "remember"}


def attachments(n):
    """all beside one message"""
    yield line(0, None)
    yield line(1, 0, "assistant", call(1))
    yield line(2, 1, "user", result(1))
    for i in range(3, n):
        yield attachment(i, 2, **REMINDER)


def attachment_chain(n):
    yield line(0, None)
    yield line(1, 0, "assistant", call(1))
    yield line(2, 1, "user", result(1))
    for i in range(3, n - 1):
        yield attachment(i, i - 1, **REMINDER)
    yield line(n, n - 2, "assistant", text())


def attachments_off_path(n):
    """a chain of attachments under a parallel result that the chain does not run through"""
    yield line(0, None)
    yield line(1, 0, "assistant", call(1), id="msg_one")
    yield line(2, 1, "assistant", call(2), id="msg_one")
    yield line(3, 1, "user", result(1))
    for i in range(4, n - 1):
        yield attachment(i, i - 1, **REMINDER)
    yield line(n, 2, "user", result(2))
    yield line(n + 1, n, "assistant", text())


def progress_line(i, parent):
    return json.dumps({"parentUuid": uid(parent), "isSidechain": False, "type": "progress", "data": {"type": "hook_progress"}, "toolUseID": "call_1",
                       "parentToolUseID": "call_1", "uuid": uid(i), "timestamp": stamp(i), "sessionId": uid(7)})


def progress(n):
    """a chain of progress lines, and the conversation goes on under it"""
    yield line(0, None)
    yield line(1, 0, "assistant", call(1))
    for i in range(2, n - 1):
        yield progress_line(i, i - 1)
    yield line(n, n - 2, "user", result(1))


def progress_star(n):
    yield line(0, None)
    yield line(1, 0, "assistant", call(1))
    for i in range(2, n - 1):
        yield progress_line(i, 1)
    yield line(n, 1, "user", result(1))


def progress_each(n):
    """branches with a line of progress each"""
    yield line(0, None)
    for i in range(1, n - 1, 2):
        yield line(i, 0, "assistant", call(i))
        yield progress_line(i + 1, i)


def progress_dead(n):
    """lines of progress whose parent no line has"""
    yield line(0, None)
    for i in range(1, n):
        yield progress_line(i, n + i)


# Shapes for sizes of up to a million: `--group large --sizes 250000,1000000`.

def tiny_lines(n):
    """five lines for each"""
    for i in range(n):
        yield "{}\n{}\n{}\n{}\n{}"


def long_line(n):
    """one line, 500 bytes for each"""
    yield line(0, None)
    yield line(1, 0, "assistant", "@").replace("@", "x" * (500 * n))
    yield line(2, 1)


def sidechains(n):
    yield line(0, None)
    for i in range(1, n):
        yield line(i, None if i % 2 else i - 1, kind(i + 1), text(), isSidechain=True, agentId="a%d" % i)


def sidechain_one(n):
    yield line(0, None)
    for i in range(1, n):
        yield line(i, i - 1 if i > 1 else None, kind(i + 1), text(), isSidechain=True)


def cycle(n):
    for i in range(n):
        yield line(i, (i - 1) % n, kind(i), text())


def cycle_tail(n):
    """half of the entries hang in a chain under a cycle of the other half"""
    half = n // 2
    for i in range(half):
        yield line(i, (i - 1) % half, kind(i), text())
    for i in range(half, n):
        yield line(i, i - 1, kind(i), text())


def backward(n):
    """each entry precedes its parent"""
    for i in range(n):
        yield line(i, i + 1 if i < n - 1 else None, kind(i), text())


def glued(n):
    for i in range(0, n, 2):
        yield line(i, i - 1 if i else None, kind(i), text()) + line(i + 1, i, kind(i + 1), text())


def torn(n):
    for i in range(n):
        whole = line(i, i - 1 if i else None, kind(i), text())
        yield whole if i % 2 else whole[:-20]


def metadata(n):
    yield from chain(n // 2)
    for i in range(n // 2):
        t = ["custom-title", "ai-title", "tag", "summary", "queue-operation"][i % 5]
        yield json.dumps({"type": t, "customTitle": "t", "aiTitle": "t", "tag": "t", "summary": "s", "leafUuid": uid(i), "sessionId": uid(7),
                          "operation": "enqueue", "content": "c%d" % i, "timestamp": stamp(i)})


def turns(n):
    """prompts with a call each"""
    for i in range(0, n - 3, 4):
        yield line(i, i - 1 if i else None, "user", "prompt %d" % i)
        yield line(i + 1, i, "assistant", call(i), id="m%d" % i)
        yield line(i + 2, i + 1, "user", result(i))
        yield line(i + 3, i + 2, "assistant", text())


# Shapes of one line: N elements.

def content(items, n, role="user"):
    head = '{"type":"%s","uuid":"%s","parentUuid":null,"timestamp":"%s","sessionId":"%s","message":{"id":"m1","role":"%s","content":[' % (
        role, uid(1), stamp(1), uid(7), role)
    yield head + ",".join([items] * n) + "]}}"


def blocks(n):
    yield from content('{"type":"text","text":"a"}', n)


def zeros(n):
    yield from content("0", n)


def arrays(n):
    yield from content("[]", n)


def objects(n):
    yield from content('{"a":1}', n)


def keys(n):
    yield '{"type":"user","uuid":"%s","parentUuid":null,%s,"message":{"role":"user","content":"x"}}' % (uid(1), ",".join(['"":0'] * n))


def result_zeros(n):
    yield line(0, None)
    yield line(1, 0, "assistant", call(1))
    r = json.dumps(result(1)).replace('"done"', "[" + ",".join(["0"] * n) + "]")
    yield line(2, 1, "user", "@").replace('"@"', r)


def input_zeros(n):
    yield line(0, None)
    c = json.dumps(call(1)).replace('"a"', "[" + ",".join(["0"] * n) + "]")
    yield line(1, 0, "assistant", "@").replace('"@"', c)


def own_result_zeros(n):
    yield line(0, None)
    yield line(1, 0, "assistant", call(1, "Edit"))
    yield line(2, 1, "user", result(1), toolUseResult={"structuredPatch": "@"}).replace('"@"', "[" + ",".join(["0"] * n) + "]")


def calls_in_one(n):
    yield line(0, None)
    yield line(1, 0, "assistant", [call(i)[0] for i in range(n)])
    yield line(2, 1, "user", [result(i)[0] for i in range(n)])


def markdown(pattern):
    def make(n):
        yield line(0, None)
        yield line(1, 0, "assistant", text(pattern(n)))
    return make


MARKDOWN = {
    "quotes": lambda n: "> " * n,
    "quotes, lines": lambda n: "".join(">" * (i % 50) + " x\n" for i in range(n // 25)),
    "emphasis": lambda n: "*a **b " * n,
    "underscores": lambda n: "_a __b " * n,
    "closers": lambda n: "a* b_ " * n,
    "stars": lambda n: "*" * n,
    "star a": lambda n: "*a" * n + "b*" * n,
    "tildes": lambda n: "~a ~~b " * n,
    "brackets": lambda n: "[" * n,
    "brackets closed": lambda n: "[" * n + "]" * n,
    "links": lambda n: "[a](" * n,
    "links, angle": lambda n: "[a](<b" * n,
    "links, nested": lambda n: "[" * n + "a" + "](b)" * n,
    "images": lambda n: "![" * n,
    "images, nested": lambda n: "![" * n + "a" + "](b)" * n,
    "references": lambda n: "[a][b] " * n,
    "definitions": lambda n: "".join("[a%d]: b\n" % i for i in range(n)) + "[a1]" * n,
    "one definition": lambda n: "[a]: " + "b" * n + "\n\n" + "[a]" * n,
    "footnotes": lambda n: "[^a" * n + "\n" + "[^a]: b\n" * n,
    "angles": lambda n: "<" * n,
    "tags": lambda n: "<a " * n,
    "comments": lambda n: "<!-- a " * n,
    "instructions": lambda n: "a <? " * n,
    "declarations": lambda n: "a <!A " * n,
    "cdata": lambda n: "a <![CDATA[ " * n,
    "links, http": lambda n: "<http://a " * n,
    "attributes": lambda n: "<a" + " b='" * n,
    "ampersands": lambda n: "&" * n,
    "entities": lambda n: "&amp" * n,
    "backticks": lambda n: "".join("`" * i + "a" for i in range(1, int((2 * n) ** .5))),
    "backtick": lambda n: "a` `` " * n,
    "fences": lambda n: "```\n" * n,
    "backslashes": lambda n: "\\" * n,
    "lists": lambda n: "- " * n,
    "lists, nested": lambda n: "".join("  " * i + "- a\n" for i in range(int(n ** .5))),
    "numbers": lambda n: "1. " * n,
    "numbers, lines": lambda n: "1. a\n" * n,
    "items": lambda n: "- a\n\n" * n,
    "table, columns": lambda n: "|a" * n + "\n" + "|-" * n + "\n" + "|b\n" * (n // 16),
    "table, rows": lambda n: "|a|b|\n|-|-|\n" + "|c|d|\n" * n,
    "table heads": lambda n: "|a\n|-\n" * n,
    "headings": lambda n: "# a\n" * n,
    "underlines": lambda n: "a\n=\n" * n,
    "one paragraph": lambda n: "a\n" * n,
    "spaces": lambda n: " " * n + "a",
    "tabs": lambda n: "\t" * n + "a",
    "breaks": lambda n: "a  \n" * n,
    "quoted lists": lambda n: "> - " * n,
    "autolinks": lambda n: "<a@b.c>" * n,
    "task": lambda n: "- [ ] " * n,
    "html": lambda n: "<div>\n" * n,
    "strong, nested": lambda n: "**a " * n + "b** " * n,
    "one word": lambda n: "a" * n,
    "wide": lambda n: "\u200d" * n,
    "accents": lambda n: "e" + "\u0301" * n,
}

TREES = [chain, star, comb, roots, lost, components, same_uuid, same_message, parallel, parallel_results, parallel_reversed, one_call,
         one_call_star, calls_of_one_id, star_of_one_message, boundary_on_each_branch, boundaries, kept, pins, pins_lost, tombstones, attachments, attachment_chain, attachments_off_path, progress, progress_star,
         progress_each, progress_dead, sidechains, sidechain_one, cycle, cycle_tail, backward, glued, torn, metadata, turns]
LARGE = [tiny_lines, long_line, chain, star, roots, same_uuid, cycle, progress, progress_dead]
LINES = [blocks, zeros, arrays, objects, keys, result_zeros, input_zeros, own_result_zeros, calls_in_one]

R, V = ["replay"], ["--policy", "vendor"]
EVERY = [
    ["replay"], ["replay", "--json"], ["replay", "--format", "markdown", "--tools", "full"],
    ["replay", "--all-branches"], ["replay", "--all-branches", "--json"], ["replay", "--explain", "--format", "ids"],
    ["replay", "--all-branches", "--json"] + V, ["replay", "--sidechains"],
    ["resume", "--json"], ["resume", "--json"] + V, ["tree"], ["tree", "--json"], ["tail"], ["tail", "--json"], ["list"], ["fork"],
    ["export", "--html", "-"], ["export", "--json", "-"], ["verify"], ["repair"], ["usage", "--no-cache"],
]
ONE_LINE = [
    ["replay"], ["replay", "--json"], ["replay", "--format", "markdown", "--tools", "full"], ["replay", "--tools", "full"],
    ["resume", "--request"], ["resume", "--request"] + V, ["resume", "--json"], ["tree"], ["tree", "--json"], ["tail"], ["tail", "--json"], ["list"], ["fork"],
    ["export", "--html", "-"], ["export", "--json", "-"], ["verify"], ["repair"], ["usage", "--no-cache"],
]
SHOWN = [["replay"], ["tail"]]
INDEXED = [["replay", "--format", "ids"], ["resume", "--json"], ["tree", "--json"]]


def run(command, limit):
    """processor time (user and system) in seconds, peak memory in MiB, and how it ended"""
    start = time.monotonic()
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.execvp(command[0], command)
    pause, killed = 0.001, False
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            break
        if not killed and time.monotonic() - start > limit:
            os.kill(pid, 9)
            killed = True
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
    end = "over %d s" % limit if killed else "" if os.WIFEXITED(status) and os.WEXITSTATUS(status) in (0, 1, 3) else "ended with %d" % status
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, end


def factor(n0, t0, n1, t1):
    """the factor by which the time grows with each doubling of the size"""
    return (t1 / t0) ** (1 / math.log2(n1 / n0))


def invocation(binary, command, project, path):
    if command[0] == "list":
        return [binary, "-q", "--root", project] + command
    return [binary, "-q"] + command + [path]


def measure(o, shapes, commands, sizes, temp, failed):
    for name, make in shapes:
        if o.only and not any(word in name for word in o.only.split(",")):
            continue
        seen = {}
        for n in sizes:
            folder = os.path.join(temp, "projects", "-p")
            os.makedirs(folder, exist_ok=True)
            path = os.path.join(folder, uid(7) + ".jsonl")
            with open(path, "w") as f:
                for l in make(n):
                    f.write(l + "\n")
            size = os.path.getsize(path)
            for command in commands:
                key = " ".join(command)
                if o.command and o.command not in key:
                    continue
                if seen.get(key) and seen[key][-1][3]:
                    continue
                full = invocation(o.bin, command, os.path.join(temp, "projects"), path)
                runs = seen.setdefault(key, [])
                time_, memory, end = run(full, o.limit)
                # Another process can slow down a run: a run that seems too slow is repeated up to four times.
                for _ in range(4):
                    if end or not runs or runs[-1][1] < o.least or factor(runs[-1][0], runs[-1][1], n, time_) <= o.most:
                        break
                    time_ = min(time_, run(full, o.limit)[0])
                runs.append((n, time_, memory, end, size))
                for other in os.listdir(folder):
                    if other != os.path.basename(path):
                        os.unlink(os.path.join(folder, other))
        slowest, worst_of_all, most_memory = None, 0, 0
        for key, runs in seen.items():
            factors = []
            for (n0, t0, _, _, _), (n1, t1, _, e1, _) in zip(runs, runs[1:]):
                if t0 >= o.least:
                    factors.append(factor(n0, t0, n1, t1))
            worst = max(factors, default=0)
            end = runs[-1][3]
            is_bad = worst > o.most or bool(end) or any(m > o.memory for _, _, m, _, _ in runs)
            if is_bad:
                failed.append((name, key))
            worst_of_all = max(worst_of_all, worst)
            most_memory = max(most_memory, *(m for _, _, m, _, _ in runs))
            if slowest is None or runs[-1][1] > slowest[1][-1][1]:
                slowest = key, runs
            if o.summary or (o.quiet and not is_bad):
                continue
            figures = " | ".join("%.2f s, %.0f MiB" % (t, m) for _, t, m, _, _ in runs)
            figures += " | -" * (len(sizes) - len(runs))
            mark = " **%s**" % end if end else " **!**" if is_bad else ""
            print("| %s | `%s` | %s | %s%s |" % (name, key, figures, "%.2f" % worst if factors else "-", mark), flush=True)
        if o.summary and slowest:
            key, runs = slowest
            figures = " | ".join("%.2f s" % t for _, t, _, _, _ in runs)
            grows = "%.2f" % worst_of_all if worst_of_all else "-"
            print("| %s | `%s` | %s | %.0f MiB | %s |" % (name, key, figures, most_memory, grows), flush=True)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--bin", default="target/release/transcript")
    a.add_argument("--sizes", default="20000,80000,320000", help="lines, elements or repeats")
    a.add_argument("--only", default="", help="only shapes with one of these words in their names")
    a.add_argument("--command", default="", help="only commands with this in them")
    a.add_argument("--group", default="trees,lines,markdown")
    a.add_argument("--limit", type=float, default=60)
    a.add_argument("--most", type=float, default=2.3, help="the largest factor that passes")
    a.add_argument("--least", type=float, default=0.15, help="the shortest time that is compared, in seconds")
    a.add_argument("--memory", type=float, default=math.inf, help="the most MiB that pass")
    a.add_argument("--summary", action="store_true", help="print a row for each shape: its slowest command")
    a.add_argument("--quiet", action="store_true", help="print only what fails")
    o = a.parse_args()
    sizes = [int(n) for n in o.sizes.split(",")]
    groups = {
        "trees": ([(f.__name__.replace("_", " "), f) for f in TREES], EVERY),
        "large": ([(f.__name__.replace("_", " "), f) for f in LARGE], INDEXED),
        "lines": ([(f.__name__.replace("_", " "), f) for f in LINES], ONE_LINE),
        "markdown": ([("markdown " + name, markdown(f)) for name, f in MARKDOWN.items()], SHOWN),
    }
    failed = []
    with tempfile.TemporaryDirectory() as temp:
        memory = " most memory |" if o.summary else ""
        print("| shape | %scommand | %s |%s worst factor per doubling |" % ("slowest " * o.summary, " | ".join(map(str, sizes)), memory))
        print("| --- | --- |%s ---: |" % (" ---: |" * (len(sizes) + o.summary)))
        for group in o.group.split(","):
            shapes, commands = groups[group]
            measure(o, shapes, commands, sizes, temp, failed)
    for name, key in failed:
        print("failed: %s, %s" % (name, key), file=sys.stderr)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
