#!/usr/bin/env python3
"""Measures the speed and the memory of reading the sessions of other agents.

  import_speed.py [--items PROGRAM] [--dir DIR] [--rounds N] [--agent NAME …]

Makes rollouts of Codex and a session of each other agent in DIR (default: a temporary folder) and runs PROGRAM (the example `items` of transcript-import) on each, next to `cat` and
`wc -l`. The records have the shapes of the shared fixtures; the outputs of tools are as long as those of real sessions: most are short, some
fill tens of kilobytes. `--make-only` only writes the files.
"""
import argparse, json, os, random, sqlite3, subprocess, sys, tempfile

THREAD = "01a21081-f9a1-72e1-9353-def3505cd9{:02x}"
WORDS = "the file error let fn self value return match none some result test build line path read write offset index node".split()


def prose(numbers, length):
    """Text of about `length` characters: words, line feeds, quotes and a few characters beyond ASCII."""
    words, size = [], 0
    while size < length:
        word = numbers.choice(WORDS) + numbers.choice([" ", " ", " ", " ", "\n", '" ', "_", ": ", "/", " é "])
        words.append(word)
        size += len(word)
    return "".join(words)[:length]


class Rollout:
    """Writes the records of one rollout."""

    def __init__(self, path, thread, numbers):
        self.file, self.thread, self.numbers = open(path, "w", encoding="utf-8"), thread, numbers
        self.ordinal = self.size = self.call = 0
        # Making text takes longer than reading it, so outputs are parts of one long text.
        self.text = prose(numbers, 1 << 20)

    def record(self, kind, payload):
        seconds = self.ordinal // 10
        time_of = f"2026-11-25T{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{self.ordinal % 1000:03}Z"
        line = json.dumps({"timestamp": time_of, "ordinal": self.ordinal, "type": kind, "payload": payload}, ensure_ascii=False, separators=(",", ":")) + "\n"
        self.file.write(line)
        self.ordinal += 1
        self.size += len(line.encode())

    def some_text(self, length):
        length = min(length, len(self.text))
        start = self.numbers.randrange(len(self.text) - length + 1)
        return self.text[start:start + length]

    def header(self):
        self.record("session_meta", {"session_id": self.thread, "id": self.thread, "timestamp": "2026-11-25T02:21:23.237Z", "cwd": "/w", "originator": "t",
                                     "cli_version": "0.169.0", "source": "cli", "history_mode": "paginated"})

    def message(self, role, text):
        part = "output_text" if role == "assistant" else "input_text"
        kinds = ["unknown"] if role == "assistant" else ["user.text"]
        turn = f"01a21081-f9b9-7a11-83dc-{self.ordinal:012x}"
        item = {"type": "message", "id": f"msg_{turn}", "role": role, "content": [{"type": part, "text": text}],
                "internal_chat_message_metadata_passthrough": {"turn_id": turn, "content_item_kinds": kinds}}
        name, shown = ("AgentMessage", "Text") if role == "assistant" else ("UserMessage", "text")
        event = {"type": "item_completed", "thread_id": self.thread, "turn_id": turn, "item": {"type": name, "id": f"msg_{turn}", "content": [{"type": shown, "text": text}]},
                 "started_at_ms": 1795573283392, "completed_at_ms": 1795573283392}
        self.record("response_item", item)
        self.record("event_msg", event)

    def usage(self):
        usage = {"input_tokens": 1001 + self.ordinal, "cached_input_tokens": 100, "cache_write_input_tokens": 0, "output_tokens": 21, "reasoning_output_tokens": 5}
        self.record("token_usage_record", {"thread_id": self.thread, "response_id": f"resp_{self.ordinal}", "usage": usage, "turn_token_usage": usage, "thread_token_usage": usage})
        limits = {"limit_id": "codex", "primary": None, "secondary": None, "credits": None}
        self.record("event_msg", {"type": "token_count", "info": {"total_token_usage": usage, "last_token_usage": usage, "model_context_window": 258400}, "rate_limits": limits})

    def tool(self, length):
        self.call += 1
        call, output = f"call_m{self.call:07}", self.some_text(length)
        command = self.some_text(self.numbers.choice([20, 60, 200]))
        self.record("response_item", {"type": "function_call", "id": f"fc_{self.call}", "name": "exec_command", "arguments": json.dumps({"cmd": command}), "call_id": call})
        self.record("event_msg", {"type": "item_completed", "thread_id": self.thread, "turn_id": "t", "item": {
            "type": "CommandExecution", "id": call, "process_id": "7", "command": ["/bin/bash", "-lc", command], "cwd": "file:///w", "source": "unified_exec_startup",
            "status": "completed", "aggregated_output": output, "exit_code": 0, "duration": {"secs": 0, "nanos": 37275}}})
        self.record("response_item", {"type": "function_call_output", "id": f"fco_{self.call}", "call_id": call, "output": f"Chunk ID: 0f1411\nProcess exited with code 0\nOutput:\n{output}"})

    def turn(self):
        """A prompt, some calls, an answer."""
        self.record("event_msg", {"type": "task_started", "turn_id": "t", "started_at": 1795573283, "model_context_window": 258400})
        self.record("turn_context", {"turn_id": "t", "cwd": "/w", "approval_policy": "never", "model": "gpt-5", "summary": "none"})
        self.message("user", self.some_text(self.numbers.choice([30, 200, 2000])))
        for _ in range(self.numbers.choice([1, 4, 12])):
            length = self.numbers.choices([60, 800, 5_000, 20_000, 60_000], [20, 30, 25, 20, 5])[0]
            self.tool(length)
            self.record("response_item", {"type": "reasoning", "id": f"rs_{self.ordinal}", "summary": [{"type": "summary_text", "text": self.some_text(300)}]})
            self.usage()
        self.message("assistant", self.some_text(self.numbers.choice([100, 800])))
        self.record("event_msg", {"type": "task_complete", "turn_id": "t", "last_agent_message": None})


def make(folder, number, size, line=None):
    """Writes a rollout of about `size` bytes; with `line`, of tool outputs that are so long."""
    thread = THREAD.format(number)
    day = os.path.join(folder, f"store{number}", "sessions", "2026", "11", "25")
    os.makedirs(day, exist_ok=True)
    path = os.path.join(day, f"rollout-2026-11-25T02-21-02-{thread}.jsonl")
    if not os.path.exists(path):
        rollout = Rollout(path + ".new", thread, random.Random(number))
        rollout.header()
        while rollout.size < size:
            rollout.turn()
            if line:
                call = f"call_long{rollout.ordinal}"
                rollout.record("response_item", {"type": "function_call", "name": "cat", "arguments": "{}", "call_id": call})
                text = rollout.text * (line // len(rollout.text) + 1)
                rollout.record("response_item", {"type": "function_call_output", "call_id": call, "output": text[:line]})
        rollout.file.close()
        os.rename(path + ".new", path)
    return path, thread, os.path.join(folder, f"store{number}")


class Session:
    """Makes the records of a turn in the format of one of the other agents: a prompt, calls with results, an answer."""

    FILES = {"pi": "sessions/--w--/2026_s1.jsonl", "qwen": "projects/w/chats/s1.jsonl", "gemini": "tmp/w/chats/session-2026-11-25T02-31-s1.jsonl",
             "copilot": "session-state/s1/events.jsonl"}

    def __init__(self, agent, numbers):
        self.agent, self.numbers, self.count, self.text = agent, numbers, 0, prose(numbers, 1 << 20)

    def some_text(self, length):
        start = self.numbers.randrange(len(self.text) - length + 1)
        return self.text[start:start + length]

    def header(self):
        return {"pi": [{"type": "session", "version": 3, "id": "s1", "timestamp": "t", "cwd": "/w"}], "qwen": [],
                "gemini": [{"sessionId": "s1", "projectHash": "h", "startTime": "t", "lastUpdated": "t", "kind": "main"}],
                "copilot": [self.copilot("session.start", {"sessionId": "s1", "context": {"cwd": "/w"}})]}[self.agent]

    def ids(self):
        self.count += 1
        return f"01a21092-ec9d-70dc-b810-{self.count:012x}", f"01a21092-ec9d-70dc-b810-{self.count - 1:012x}" if self.count > 1 else None

    def pi(self, **message):
        own, parent = self.ids()
        return {"type": "message", "id": own, "parentId": parent, "timestamp": "2026-11-25T02:39:54.014Z", "message": message}

    def qwen(self, kind, role, parts):
        own, parent = self.ids()
        return {"uuid": own, "parentUuid": parent, "sessionId": "s1", "timestamp": "2026-11-25T02:38:50.834Z", "type": kind, "provenance": "p", "cwd": "/w", "version": "0.24.4",
                "message": {"role": role, "parts": parts}}

    def gemini(self, kind, content, **more):
        return {"id": self.ids()[0], "timestamp": "2026-11-25T02:31:56.638Z", "type": kind, "content": content, **more}

    def copilot(self, kind, data):
        own, parent = self.ids()
        return {"type": kind, "data": data, "id": own, "timestamp": "2026-11-25T02:36:24.136Z", "parentId": parent}

    def turn(self):
        prompt, answer = self.some_text(self.numbers.choice([30, 200, 2000])), self.some_text(self.numbers.choice([100, 800]))
        lengths = self.numbers.choices([60, 800, 5_000, 20_000, 60_000], [20, 30, 25, 20, 5], k=self.numbers.choice([1, 4, 12]))
        calls = [(f"call_{self.count}_{number}", self.some_text(60), self.some_text(length)) for number, length in enumerate(lengths)]
        return getattr(self, f"turn_of_{self.agent}")(prompt, calls, answer)

    def turn_of_pi(self, prompt, calls, answer):
        usage = {"input": 102, "output": 12, "cacheRead": 5, "cacheWrite": 0, "totalTokens": 119}
        yield self.pi(role="user", content=prompt)
        for call, command, output in calls:
            tool = {"type": "toolCall", "id": call, "name": "bash", "arguments": {"command": command}}
            yield self.pi(role="assistant", content=[tool], model="m", usage=usage, stopReason="toolUse")
            yield self.pi(role="toolResult", toolCallId=call, toolName="bash", content=[{"type": "text", "text": output}], isError=False)
        yield self.pi(role="assistant", content=[{"type": "text", "text": answer}], model="m", usage=usage, stopReason="stop")

    def turn_of_qwen(self, prompt, calls, answer):
        yield self.qwen("user", "user", [{"text": prompt}])
        for call, command, output in calls:
            yield self.qwen("assistant", "model", [{"functionCall": {"id": call, "name": "shell", "args": {"command": command}}}])
            yield self.qwen("tool_result", "user", [{"functionResponse": {"id": call, "name": "shell", "response": {"output": output}}}])
        yield self.qwen("assistant", "model", [{"text": answer}])

    def turn_of_gemini(self, prompt, calls, answer):
        yield self.gemini("user", [{"text": prompt}])
        for call, command, output in calls:
            result = [{"functionResponse": {"id": call, "name": "shell", "response": {"output": output}}}]
            yield self.gemini("gemini", "", toolCalls=[{"id": call, "name": "shell", "args": {"command": command}, "result": result, "status": "success"}], model="m")
            yield {"$set": {"lastUpdated": "2026-11-25T02:31:56.827Z"}}
        yield self.gemini("gemini", answer, model="m", tokens={"input": 1034, "output": 54, "cached": 100})

    def turn_of_copilot(self, prompt, calls, answer):
        yield self.copilot("user.message", {"content": prompt, "transformedContent": f"<current_datetime>t</current_datetime>\n\n{prompt}"})
        for call, command, output in calls:
            tool = {"toolCallId": call, "name": "bash", "arguments": {"command": command}}
            yield self.copilot("assistant.message", {"content": "", "toolRequests": [tool], "model": "m"})
            yield self.copilot("tool.execution_start", {"toolCallId": call, "toolName": "bash", "arguments": {"command": command}})
            yield self.copilot("tool.execution_complete", {"toolCallId": call, "success": True, "result": {"content": output}})
        yield self.copilot("assistant.message", {"content": answer, "toolRequests": [], "model": "m"})


def make_session(folder, agent, size):
    """Writes a session of another agent of about `size` bytes."""
    store = os.path.join(folder, f"{agent}{size // 1_000_000}")
    path = os.path.join(store, Session.FILES[agent])
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        session, written = Session(agent, random.Random(7)), 0
        with open(path + ".new", "w", encoding="utf-8") as file:
            records = session.header()
            while written < size:
                for record in records:
                    written += file.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")
                records = session.turn()
        os.rename(path + ".new", path)
    return path, "s1", store


class OpenCode:
    """A database of OpenCode: rows of messages and parts, and an event for each version of them."""

    SCHEMA = """
        PRAGMA journal_mode = WAL;
        CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL, directory text NOT NULL, title text NOT NULL, version text NOT NULL,
            share_url text, revert text, model text, time_created integer NOT NULL, time_updated integer NOT NULL);
        CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
        CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
        CREATE TABLE event (id text PRIMARY KEY, aggregate_id text NOT NULL, seq integer NOT NULL, type text NOT NULL, data text NOT NULL);
        CREATE UNIQUE INDEX event_aggregate_seq_idx ON event (aggregate_id, seq);
        CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
        CREATE INDEX part_message_id_id_idx ON part (message_id, id);
        CREATE INDEX part_session_idx ON part (session_id);"""

    def __init__(self, path, numbers):
        self.database, self.numbers, self.count, self.size, self.text = sqlite3.connect(path), numbers, 0, 0, prose(numbers, 1 << 20)
        self.database.executescript(self.SCHEMA)

    def some_text(self, length):
        start = self.numbers.randrange(len(self.text) - length + 1)
        return self.text[start:start + length]

    def id(self, kind):
        self.count += 1
        return f"{kind}_{self.count:024x}"

    def insert(self, table, *values):
        self.database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)
        self.size += sum(len(value) for value in values if isinstance(value, str))

    def event(self, session, kind, data):
        self.insert("event", self.id("evt"), session, self.count, kind, json.dumps(data, ensure_ascii=False, separators=(",", ":")))

    def session(self, size):
        session, end = self.id("ses"), self.size + size
        self.insert("session", session, "p", None, "slug", "/w", "a title", "1.18.33", None, None, None, self.count, self.count)
        while self.size < end:
            self.turn(session)
        self.database.commit()
        return session

    def message(self, session, info, parts):
        message = self.id("msg")
        self.insert("message", message, session, self.count, self.count, json.dumps(info))
        self.event(session, "message.updated.1", {"sessionID": session, "info": {"id": message, **info, "time": {"created": self.count}}})
        for part in parts:
            own = self.id("prt")
            self.insert("part", own, message, session, self.count, self.count, json.dumps(part, ensure_ascii=False, separators=(",", ":")))
            if part["type"] == "tool":
                running = {**part, "state": {"status": "running", "input": part["state"]["input"], "time": {"start": 1}}}
                self.event(session, "message.part.updated.1", {"part": {"id": own, "messageID": message, "sessionID": session, **running}})
            self.event(session, "message.part.updated.1", {"part": {"id": own, "messageID": message, "sessionID": session, **part}})

    def turn(self, session):
        self.message(session, {"role": "user", "agent": "build"}, [{"type": "text", "text": self.some_text(self.numbers.choice([30, 200, 2000]))}])
        tokens = {"input": 102, "output": 12, "reasoning": 0, "cache": {"read": 5, "write": 0}}
        answer = {"role": "assistant", "modelID": "m", "providerID": "p", "tokens": tokens, "finish": "tool-calls"}
        for length in self.numbers.choices([60, 800, 5_000, 20_000, 60_000], [20, 30, 25, 20, 5], k=self.numbers.choice([1, 4, 12])):
            state = {"status": "completed", "input": {"command": self.some_text(60)}, "output": self.some_text(length), "title": "t", "metadata": {"exit": 0}, "time": {"start": 1, "end": 2}}
            call = {"type": "tool", "tool": "bash", "callID": f"call_{self.count}", "state": state}
            self.message(session, answer, [{"type": "step-start"}, call, {"type": "step-finish", "reason": "tool-calls", "cost": 0, "tokens": tokens}])
        self.message(session, {**answer, "finish": "stop"}, [{"type": "step-start"}, {"type": "text", "text": self.some_text(self.numbers.choice([100, 800])), "time": {"start": 1, "end": 2}}])


def make_database(folder, size):
    """Writes a database of about `size` bytes with one long session and short ones."""
    store = os.path.join(folder, f"opencode{size // 1_000_000}")
    path = os.path.join(store, "opencode.db")
    if not os.path.exists(path):
        os.makedirs(store, exist_ok=True)
        new = OpenCode(path + ".new", random.Random(7))
        new.session(size * 9 // 10)
        while new.size < size:
            new.session(2_000_000)
        new.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        new.database.close()
        os.rename(path + ".new", path)
    return path, f"ses_{1:024x}", store


def run(command):
    """Returns the seconds, those of the processor, and the peak memory in KiB of a program whose output is dropped."""
    timed = ["/usr/bin/time", "-f", "%e %U %S %M", *command]
    child = subprocess.run(timed, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    seconds, user, system, peak = map(float, child.stderr.split())
    return max(seconds, 0.01), max(user + system, 0.01), peak


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", help="the example `items`, built with --release")
    parser.add_argument("--dir")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--agent", action="append", help="only this one; can be given again")
    parser.add_argument("--make-only", action="store_true")
    options = parser.parse_args()
    folder = options.dir or tempfile.mkdtemp()
    sizes = (200, 600)
    makers = {"codex": lambda size: make(folder, size // 300 + 1, size * 1_000_000), "opencode": lambda size: make_database(folder, size * 1_000_000)}
    makers |= {agent: lambda size, agent=agent: make_session(folder, agent, size * 1_000_000) for agent in Session.FILES}
    agents = options.agent or makers
    files = [(f"{agent}, {size} MB", agent, *makers[agent](size)) for agent in agents for size in sizes]
    if "codex" in agents:
        files.append(("codex, lines of 100 MB", "codex", *make(folder, 4, 300_000_000, 100_000_000)))
    if options.make_only:
        return
    for name, agent, path, thread, store in files:
        size, lines, longest = os.path.getsize(path), "rows", 0
        if agent != "opencode":
            lines = f"{sum(1 for _ in open(path, 'rb'))} lines"
            longest = max(len(line) for line in open(path, "rb"))
        print(f"{name}: {size / 1e6:.0f} MB, {lines}, the longest {longest / 2**20:.1f} MiB; load {os.getloadavg()[0]:.1f}")
        programs = {"cat": ["cat", path], "wc -l": ["wc", "-l", path]}
        if options.items:
            programs["read"] = [options.items, "--agent", agent, "--root", store, "--count", thread]
            programs["items"] = [options.items, "--agent", agent, "--root", store, thread]
            programs["lines"] = [options.items, "--agent", agent, "--root", store, "--lines", thread]
        for program, command in programs.items():
            seconds, processor, peak = map(min, zip(*(run(command) for _ in range(options.rounds))))
            print(f"  {program:6} {size / 1e6 / seconds:7.0f} MB/s, {size / 1e6 / processor:7.0f} MB a second of the processor; "
                  f"{peak / 1024:6.1f} MiB at most, {peak / 1024 - longest / 2**20:6.1f} MiB beyond the longest line")


if __name__ == "__main__":
    sys.exit(main())
