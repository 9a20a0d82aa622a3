#!/usr/bin/env python3
"""tests/remote/proxy.py PORT [--seed N] [--rate R]

An HTTP proxy on loopback before the S3 server at PORT of this machine: counts requests and bytes by kind, and lets a share R of the requests fail as
networks and servers do. Prints its own port, and at the end of standard input the counts as one JSON line. Other scripts import it.

The faults, drawn with the seed: the connection is cut before the request goes on (`cut`), after the server did it (`lost`: for the client a timeout
after success) or within the answer (`half`); the server answers 503 (`busy`), 500 without doing anything (`error`) or after it did it (`late`); the
request is late (`slow`), or arrives twice and the client gets one of the answers (`twice`)."""
import argparse, collections, http.client, http.server, json, random, re, socket, struct, sys, threading, time

FAULTS = ("cut", "lost", "half", "busy", "error", "late", "slow", "twice")
# Longer than any pause of a server that works: a proxy that hangs would hide what the client does.
TIMEOUT = 120
ANSWERS = {"busy": (503, "SlowDown"), "error": (500, "InternalError"), "late": (500, "InternalError")}
# Headers of one connection, which do not go on to the next one.
OF_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "content-length", "expect", "proxy-connection"}


def kind_of(method, target):
    """`GET pack`, `PUT pack`, `GET list`, …: the method and what it is about"""
    path, _, query = target.partition("?")
    if re.search(r"(^|&)(list-type|prefix|delimiter)(=|&|$)", query):
        return f"{method} list"
    if re.search(r"(^|&)(uploads|uploadId|partNumber)(=|&|$)", query):
        return f"{method} part"
    if path.count("/") < 2 or path.endswith("/"):
        return f"{method} bucket"
    folder = path.split("/")[-2]
    return f"{method} {folder.rstrip('s') if folder in ('packs', 'dictionaries', 'machines') else 'object'}"


class Proxy:
    """A context: runs on `port` until it is left. `rate` and `faults` may be changed while it runs."""

    def __init__(self, target, seed=0, rate=0.0, faults=FAULTS):
        self.target, self.rate, self.faults = target, rate, tuple(faults)
        self._pick, self._lock = random.Random(seed), threading.Lock()
        self.reset()
        self._server = Server(("127.0.0.1", 0), type("Handler", (Handler,), {"proxy": self}))
        self.port = self._server.server_address[1]
        self.endpoint = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def reset(self):
        """Sets all counts to zero, and returns what they were."""
        with self._lock:
            before = getattr(self, "_counts", None)
            self._counts = {name: collections.Counter() for name in ("requests", "sent", "received", "faults", "statuses")}
        return before

    def counts(self):
        """requests, bytes of bodies that clients sent and received, faults, and statuses of the server"""
        with self._lock:
            return {name: dict(counter) for name, counter in self._counts.items()}

    def add(self, name, what, number=1):
        with self._lock:
            self._counts[name][what] += number

    def draw(self):
        """the fault of a request, or nothing, and a fraction"""
        with self._lock:
            fault = self._pick.choice(self.faults) if self._pick.random() < self.rate else None
            return fault, self._pick.random()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 64

    def handle_error(self, *_):
        # Clients that are killed leave connections that end anyhow.
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(*_)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version, timeout, disable_nagle_algorithm = "HTTP/1.1", TIMEOUT, True
    upstream = None

    def log_message(self, *_):
        pass

    def body(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            length = int(self.headers.get("Content-Length") or 0)
            data = self.rfile.read(length)
            if len(data) < length:
                raise ConnectionError("the client went away within a request")
            return data
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)

    def ask(self, body):
        """Sends the request to the server, over the connection of this client; once more if the server closed it meanwhile."""
        headers = {name: value for name, value in self.headers.items() if name.lower() not in OF_CONNECTION}
        if body or self.command in ("PUT", "POST"):
            headers["Content-Length"] = str(len(body))
        for is_last in (self.upstream is None, True):
            if self.upstream is None:
                self.upstream = http.client.HTTPConnection("127.0.0.1", self.proxy.target, timeout=TIMEOUT)
            try:
                self.upstream.request(self.command, self.path, body, headers)
                answer = self.upstream.getresponse()
                data = answer.read()
                if answer.will_close:
                    self.close_upstream()
                self.proxy.add("statuses", answer.status)
                return answer.status, answer.reason, answer.getheaders(), data
            except (http.client.HTTPException, OSError):
                self.close_upstream()
                if is_last:
                    raise

    def close_upstream(self):
        if self.upstream is not None:
            self.upstream.close()
        self.upstream = None

    def cut(self, fraction):
        """Ends the connection: as a closed one, or with a reset."""
        if fraction < 0.5:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def answer(self, status, reason, headers, data, part=1.0):
        self.send_response_only(status, reason)
        for name, value in headers:
            if name.lower() not in OF_CONNECTION or (name.lower() == "content-length" and self.command == "HEAD"):
                self.send_header(name, value)
        if self.command != "HEAD" and status not in (204, 304):
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: int(len(data) * part)])

    def handle_request(self):
        kind = kind_of(self.command, self.path)
        try:
            body = self.body()
        except (ValueError, OSError):
            return self.cut(1)
        self.proxy.add("requests", kind)
        self.proxy.add("sent", kind, len(body))
        fault, fraction = self.proxy.draw()
        if fault:
            self.proxy.add("faults", f"{fault} {kind}")
        try:
            if fault == "slow":
                time.sleep(fraction)
            if fault in ("cut", "busy", "error"):
                reply = None
            else:
                reply = self.ask(body)
                if fault == "twice":
                    again = self.ask(body)
                    reply = again if fraction < 0.5 else reply
            if fault in ("cut", "lost"):
                return self.cut(fraction)
            if fault in ANSWERS:
                status, code = ANSWERS[fault]
                reply = status, None, [("Content-Type", "application/xml")], f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
            if fault == "half":
                # An answer without a body ends within its head.
                part = min(fraction, 0.99)
                if not reply[3] or self.command == "HEAD":
                    self.wfile.write(b"HTTP/1.1 %d" % reply[0])
                else:
                    self.answer(*reply, part)
                return self.cut(1)
            self.answer(*reply)
            self.proxy.add("received", kind, 0 if self.command == "HEAD" else len(reply[3]))
        except (http.client.HTTPException, OSError):
            # One of both went away: the other one sees the same.
            self.cut(0)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_request

    def finish(self):
        try:
            super().finish()
        except OSError:
            pass
        self.close_upstream()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", type=int, metavar="PORT", help="the port of the server")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float, default=0.0, help="the share of requests that fail")
    args = parser.parse_args()
    with Proxy(args.target, args.seed, args.rate) as proxy:
        print(proxy.port, flush=True)
        sys.stdin.read()
        print(json.dumps(proxy.counts()))


if __name__ == "__main__":
    main()
