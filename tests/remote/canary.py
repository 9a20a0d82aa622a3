#!/usr/bin/env python3
"""tests/remote/canary.py BIN [--s3s PROGRAM]

Looks for secrets and texts of sessions where they must not be, and for errors that are more than a sentence. Runs each command that reads or writes an archive
over one in a bucket, with -v or --json, RUST_BACKTRACE and RUST_LOG: with right credentials, and with servers that refuse, fail, are gone, speak nonsense, or repeat
every header of a request in their answers, with wrong addresses, a missing bucket, profile files that are damaged, and an HTTP proxy whose address has a password.

Each key, token and password must be in no output and in no file below the home folder, in no usual encoding; a text of a session only in hits of `search`, what is
restored, and the live files. An error is one line on standard error with the exit code of the contract, and nothing of a command that failed is in the bucket. Prints a table
and one JSON line; exits with 1 when something is wrong. Needs moto, which it installs; `--s3s` is a server that checks signatures (s3s-fs)."""
import argparse, base64, collections, concurrent.futures, http.server, json, os, pathlib, re, shutil, socket, subprocess, sys, tempfile, threading, urllib.parse, uuid

sys.dont_write_bytecode = True
import bucket, proxy  # noqa: E402

SECRETS = {name: f"{name}Canary7Zq{number}/+secret" for number, name in enumerate(("keyid", "secretkey", "sessiontoken", "profileid", "profilekey", "profiletoken", "userinfo", "query", "proxyword"))}
TEXT = "line-canary-4Kq9-of-a-session"
SESSION = "c0ffee00-1111-4222-8333-444444444444"
# This one is in the archive only.
OTHER = f"{SESSION[:-1]}5"
PREFIX = "canary/archive"
ARCHIVE_COMMANDS = {
    "keep": ["keep"],
    "push": ["push", SESSION],
    "list --archived": ["list", "--archived"],
    "list --all": ["list", "--all"],
    "search --all": ["search", "--all", "line-canary"],
    "verify --archive": ["verify"],
    "restore": ["restore", SESSION, "--to", "BACK"],
    "pull": ["pull", OTHER],
    "restore --all": ["restore", "--all", "--to", "BACK"],
    "usage --all": ["usage", "--all"],
    "prune": ["prune"],
    "prune --yes": ["prune", "--yes"],
    "replay": ["replay", OTHER],
}
# The archive is one of several sources there: the rest is shown, and the exit code says that it is not all.
WITH_LIVE_FILES = {"list --all", "search --all", "usage --all"}
TIMEOUT = 240


def encodings(text):
    data = text.encode()
    # The part of a base64 text that is the same wherever the text starts.
    shifted = [base64.b64encode(b"\0" * shift + data)[(4 if shift else 0) : -4] for shift in range(3)]
    return {data, urllib.parse.quote(text, "").encode(), urllib.parse.quote_plus(text).encode(), data.hex().encode(), json.dumps(text).encode()[1:-1], *shifted}


class Scripted(http.server.BaseHTTPRequestHandler):
    """A server that answers as `mode` says, and repeats the request in each answer."""

    protocol_version, mode = "HTTP/1.1", None
    CODES = {
        "refuses": (403, "SignatureDoesNotMatch"),
        "unknown key": (403, "InvalidAccessKeyId"),
        "denies": (403, "AccessDenied"),
        "expired": (400, "ExpiredToken"),
        "clock": (403, "RequestTimeTooSkewed"),
        "no bucket": (404, "NoSuchBucket"),
        "fails": (500, "InternalError"),
        "busy": (503, "SlowDown"),
        "moved": (301, "PermanentRedirect"),
        "not implemented": (501, "NotImplemented"),
        "teapot": (418, "Teapot"),
    }

    def log_message(self, *_):
        pass

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        said = f"{self.path} {dict(self.headers)} {SECRETS} {TEXT}"
        if self.mode == "garbage":
            self.wfile.write(b"\x16\x03\x01 not http " + said.encode() + b"\r\n\r\n")
            self.close_connection = True
            return
        status, code = self.CODES.get(self.mode, (200, None))
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{said}</Message></Error>" if code else f"<html>{said}</html>"
        self.send_response_only(status)
        for name in ("ETag", "x-amz-request-id", "Last-Modified", "Location"):
            self.send_header(name, said.replace("\n", " "))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body.encode())

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer


class Home:
    """A home folder with sessions, one of which is only in the archive, and profile files."""

    def __init__(self, place, name, bin_path):
        self.folder, self.bin, self.root = place / name, bin_path, place / name / ".claude" / "projects"
        for session in (SESSION, OTHER):
            path = self.root / "-p" / f"{session}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            entry = {"isSidechain": False, "userType": "external", "cwd": "/p", "sessionId": session, "version": "2.1.119", "timestamp": "2026-01-01T09:00:00.000Z"}
            # Lists show the last prompt and the last answer, so the text is before them.
            said = (("user", "a question"), ("assistant", TEXT), ("user", "another question"), ("assistant", "an answer"))
            lines, parent = [], None
            for number, (role, text) in enumerate(said):
                line = {**entry, "type": role, "uuid": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{session}{number}")), "parentUuid": parent}
                parent = line["uuid"]
                message = {"role": role, "content": text}
                if role == "assistant":
                    usage = {"input_tokens": 10, "output_tokens": 5}
                    message |= {"id": f"msg_{number}{session}", "type": "message", "model": "claude-sonnet-4-20250514", "content": [{"type": "text", "text": text}], "usage": usage}
                    line["requestId"] = f"req_{number}{session}"
                lines.append(json.dumps({**line, "message": message}).encode() + b"\n")
            # A torn line of which an error might show a part.
            path.write_bytes(lines[0] + b'{"type":"user","message":"' + TEXT.encode() + b"\n" + b"".join(lines[1:]))
            os.utime(path, (1.7e9, 1.7e9))
        aws = self.folder / ".aws"
        aws.mkdir()
        aws.joinpath("credentials").write_text(
            f"[default]\naws_access_key_id = {SECRETS['profileid']}\naws_secret_access_key = {SECRETS['profilekey']}\naws_session_token = {SECRETS['profiletoken']}\n"
            f"[torn]\naws_access_key_id {SECRETS['profileid']}\naws_secret_access_key = \n[half\naws_secret_access_key = {SECRETS['profilekey']}\n"
        )

    def forget(self):
        self.root.joinpath("-p", f"{OTHER}.jsonl").unlink()

    def run(self, command, archive, env, option, *more):
        back = self.folder / "back" / "projects"
        arguments = [str(back) if part == "BACK" else part for part in ARCHIVE_COMMANDS[command]]
        keep = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
        env = {**keep, "HOME": str(self.folder), "RUST_BACKTRACE": "1", "RUST_LOG": "trace", "TRANSCRIPT_MACHINE": self.folder.name, "AWS_EC2_METADATA_DISABLED": "true", **env}
        whole = [self.bin, *arguments, "--archive", archive, "--root", str(self.root), option, *more]
        if command in ("restore", "restore --all"):
            shutil.rmtree(back, ignore_errors=True)
        return subprocess.run(whole, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT)

    def files(self):
        for path in sorted(self.folder.rglob("*")):
            below = path.relative_to(self.folder)
            if path.is_file() and below.parts[0] not in (".aws", "back") and self.root not in path.parents:
                yield path


class Judge:
    def __init__(self, forbidden):
        self.wrong, self.total, self.said = [], collections.Counter(), {}
        self.secrets = {name: encodings(text) for name, text in forbidden.items()}
        self.lock = threading.Lock()

    def say(self, text):
        with self.lock:
            self.wrong.append(text)
            print(f"wrong: {text}", flush=True)

    def look(self, where, data, with_text=True):
        for name, forms in self.secrets.items():
            if any(form in data for form in forms):
                self.say(f"{where} shows the secret {name}")
        if with_text and any(form in data for form in encodings(TEXT)):
            self.say(f"{where} shows a text of a session")

    def look_at_files(self, home):
        for path in home.files():
            # Packs are compressed; those in the local folder are what is cached of the archive.
            self.look(f"file {path.relative_to(home.folder)}", path.read_bytes(), "packs" not in path.parts)
            self.total["files"] += 1

    def compare(self, command, error, made):
        """Compares the requests that -v states with those that were made."""
        stated = re.findall(r": ([0-9]+) requests?\b", error)
        if sum(map(int, stated)) != made:
            self.say(f"{command} -v states {stated} requests, and made {made}")

    def encrypted(self, place, bin_path, at, server, keys):
        """An encrypted archive: nothing of a session is in the bucket, and nothing without the key on another machine."""
        writer, archive = Home(place, "writer", bin_path), at(server.endpoint).replace(PREFIX, "canary/encrypted")
        key = place / "key"
        run = lambda home, command, *more: home.run(command, archive, keys, "-v", *more)
        self.judge("encrypted: keep", "keep", run(writer, "keep", "--encrypt", str(key)), (0,), "-v")
        reader = Home(place, "reader", bin_path)
        reader.forget(), reader.root.joinpath("-p", f"{SESSION}.jsonl").unlink()
        wrong = place / "wrong"
        wrong.write_text("AGE-SECRET-KEY-1" + "Q" * 58 + "\n")
        for command in ("list --archived", "verify --archive", "restore", "replay", "restore --all"):
            for more in ((), ("--identity", str(wrong))):
                self.judge(f"encrypted {'with a damaged key' if more else 'without the key'}: {command}", command, run(reader, command, *more), (2,), "-v")
        for path in reader.files():
            for text in (TEXT, "a question", "an answer"):
                if text.encode() in path.read_bytes():
                    self.say(f"encrypted: without the key, {path.relative_to(reader.folder)} shows {text}")
        for command in ("list --archived", "verify --archive", "restore", "replay"):
            self.judge(f"encrypted: {command}", command, run(reader, command, "--identity", str(key)), (0,), "-v")
        for name in bucket.objects(server.port, "canary/encrypted"):
            data = bucket.request(server.port, "GET", name)[2]
            if any(text.encode() in data for text in (TEXT, "a question", "an answer", SESSION, "/p")):
                self.say(f"encrypted: object {name} shows something of a session")
            if not name.endswith((".age", "archive.json")):
                self.say(f"encrypted: object {name} is not encrypted")

    def judge(self, where, command, done, codes, option):
        self.total["runs"] += 1
        error = done.stderr.decode(errors="replace")
        shows_text = command.startswith(("search", "replay"))
        self.look(f"{where}: standard output", done.stdout, not shows_text)
        self.look(f"{where}: standard error", done.stderr)
        if "panicked" in error or "stack backtrace" in error:
            self.say(f"{where}: panics: {error[:400]}")
        if done.returncode not in codes:
            self.say(f"{where}: exit {done.returncode} instead of {codes}: {error.strip()[:400]}")
        if 0 in codes:
            return
        lines = error.strip().splitlines()
        if option == "--json":
            try:
                errors = [json.loads(line) for line in lines]
                lines = [one["error"]["message"] for one in errors]
            except (ValueError, KeyError, TypeError):
                return self.say(f"{where}: standard error is no JSON of the contract: {error.strip()[:400]}")
        else:
            # -v adds the number of requests.
            lines = [line for line in lines if not re.search(r": [0-9]+ requests?\b", line)]
        # A key that cannot be read is named whatever the command does, and then what it cannot do without it.
        most = 3 if "damaged key" in where else 1
        if not 1 <= len(lines) <= most or any(not 20 < len(line) < 400 for line in lines):
            self.say(f"{where}: the error is not one sentence: {lines}")
        with self.lock:
            self.said.setdefault(where.split(":")[0], lines[0] if lines else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", nargs="?", default="target/debug/transcript")
    parser.add_argument("--s3s", metavar="PROGRAM")
    args = parser.parse_args()
    bin_path = os.path.abspath(args.bin)
    keys = {"AWS_ACCESS_KEY_ID": SECRETS["keyid"], "AWS_SECRET_ACCESS_KEY": SECRETS["secretkey"], "AWS_SESSION_TOKEN": SECRETS["sessiontoken"], "AWS_REGION": "us-east-1"}
    judge = Judge(SECRETS)
    with tempfile.TemporaryDirectory() as scratch, bucket.Server() as server:
        place = pathlib.Path(scratch).resolve()
        at = lambda endpoint, name=bucket.BUCKET: f"s3://{name}/{PREFIX}?endpoint={endpoint}"
        right = at(server.endpoint)
        # What works: with the keys of the environment, then with those of the profile.
        home = Home(place, "right", bin_path)
        with proxy.Proxy(server.port) as between:
            for number, env in enumerate((keys, {"AWS_REGION": "us-east-1"}, {**keys, "AWS_PROFILE": "default"})):
                for command in ARCHIVE_COMMANDS:
                    for option in ("-v", "--json"):
                        between.reset()
                        done = home.run(command, at(between.endpoint), env, option)
                        judge.judge(f"works {number}: {command} {option}", command, done, (0,), option)
                        if option == "-v":
                            judge.compare(command, done.stderr.decode(), sum(between.counts()["requests"].values()))
                    if command == "keep" and number == 0:
                        home.forget()
        judge.encrypted(place, bin_path, at, server, keys)
        judge.look_at_files(home)
        before = bucket.objects(server.port)
        shape = [name for name in before if not re.fullmatch(r"canary/[a-z]+/(archive\.json|packs/[0-9a-f]{32}\.jsonl\.zst(\.age)?|dictionaries/[0-9a-f]{32}\.dict(\.age)?)", name)]
        if shape or not any("/packs/" in name for name in before):
            judge.say(f"the bucket has other objects: {shape}")
        scenarios, servers = {}, []
        for mode in (*Scripted.CODES, "nonsense", "garbage"):
            answering = proxy.Server(("127.0.0.1", 0), type("Handler", (Scripted,), {"mode": mode}))
            threading.Thread(target=answering.serve_forever, daemon=True).start()
            servers.append(answering)
            scenarios[f"server {mode}"] = (at(f"http://127.0.0.1:{answering.server_address[1]}"), keys)
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            gone = f"http://127.0.0.1:{closed.getsockname()[1]}"
            scenarios["server gone"] = (at(gone), keys)
            scenarios["no such host"] = (at("http://no-such-host.invalid:9"), keys)
            scenarios["missing bucket"] = (at(server.endpoint, "transcript-missing"), keys)
            scenarios["HTTP proxy gone"] = (at("http://no-such-host.invalid"), {**keys, "http_proxy": f"http://u:{urllib.parse.quote(SECRETS['proxyword'], '')}@127.0.0.1:{gone.rsplit(':', 1)[1]}", "HTTP_PROXY": gone})
            scenarios["user in the address"] = (f"s3://u:{SECRETS['userinfo']}@{bucket.BUCKET}/{PREFIX}", keys)
            scenarios["user in the endpoint"] = (at(f"http://u:{SECRETS['userinfo']}@127.0.0.1:{server.port}"), keys)
            scenarios["secret in the query"] = (f"{right}&X-Amz-Signature={SECRETS['query']}", keys)
            scenarios["secret for the region"] = (f"{at(gone)}&region={SECRETS['query']}", keys)
            scenarios["no such profile"] = (at(gone), {"AWS_PROFILE": "missing"})
            scenarios["torn profile"] = (at(gone), {"AWS_PROFILE": "torn"})
            scenarios["key with a line feed"] = (right, {**keys, "AWS_ACCESS_KEY_ID": SECRETS["keyid"] + "\nx: y"})
            s3s = bucket.Server(args.s3s) if args.s3s else None
            if s3s:
                s3s.__enter__()
                scenarios["wrong secret"] = (at(s3s.endpoint), {**keys, "AWS_ACCESS_KEY_ID": bucket.KEYS["AWS_ACCESS_KEY_ID"]})
                scenarios["wrong key"] = (at(s3s.endpoint), keys)
            failing = Home(place, "failing", bin_path)
            failing.forget()

            def one(job):
                scenario, command, option = job
                archive, env = scenarios[scenario]
                where = f"{scenario}: {command} {option}"
                try:
                    done = failing.run(command, archive, {"AWS_REGION": "us-east-1", **env}, option)
                except subprocess.TimeoutExpired:
                    return judge.say(f"{where}: takes more than {TIMEOUT} s")
                judge.judge(where, command, done, (1, 2) if command in WITH_LIVE_FILES else (2,), option)

            jobs = [(scenario, command, option) for scenario in scenarios for command in ARCHIVE_COMMANDS for option in ("-v", "--json")]
            with concurrent.futures.ThreadPoolExecutor(6) as pool:
                list(pool.map(one, jobs))
            if s3s:
                if any(path.is_file() for path in s3s.folder.rglob("*")):
                    judge.say("a command with wrong credentials wrote to the bucket")
                s3s.__exit__()
        for answering in servers:
            answering.shutdown()
        judge.look_at_files(failing)
        if bucket.objects(server.port) != before or bucket.uploads(server.port):
            judge.say("commands that failed changed the bucket")
    print("| what fails | what the command says |\n| --- | --- |")
    for scenario, sentence in sorted(judge.said.items()):
        print(f"| {scenario} | {sentence} |")
    print(json.dumps({**judge.total, "scenarios": len(scenarios), "wrong": len(judge.wrong)}))
    return int(bool(judge.wrong))


if __name__ == "__main__":
    sys.exit(main())
