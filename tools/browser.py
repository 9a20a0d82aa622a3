"""A headless Chromium, driven over its debugging protocol with nothing but the standard library."""

import base64
import contextlib
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import time

NAMES = ["chromium", "chromium-browser", "google-chrome", "chrome", "chromium-headless-shell"]


def find():
    """Returns the path of a browser, or nothing."""
    return next((found for found in map(shutil.which, [os.environ.get("CHROMIUM", ""), *NAMES]) if found), None)


class Socket:
    """A WebSocket to the browser: text messages only, which is all the protocol uses."""

    def __init__(self, url):
        host, _, path = url.removeprefix("ws://").partition("/")
        name, _, port = host.partition(":")
        self.socket = socket.create_connection((name, int(port)), timeout=120)
        key = base64.b64encode(os.urandom(16)).decode()
        head = f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        self.socket.sendall(head.encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.socket.recv(4096)
        status, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        assert b" 101 " in status.split(b"\r\n")[0], status

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        if size < 126:
            head = struct.pack("!BB", 0x81, 0x80 | size)
        elif size < 65536:
            head = struct.pack("!BBH", 0x81, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", 0x81, 0x80 | 127, size)
        key = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
        self.socket.sendall(head + mask + (int.from_bytes(data, "big") ^ key).to_bytes(size, "big"))

    def take(self, size):
        while len(self.buffer) < size:
            more = self.socket.recv(1 << 20)
            if not more:
                raise ConnectionError("the browser is gone")
            self.buffer += more
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def receive(self):
        message = b""
        while True:
            first, size = self.take(2)
            size &= 0x7F
            if size == 126:
                (size,) = struct.unpack("!H", self.take(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", self.take(8))
            message += self.take(size)
            if first & 0x80:
                return message.decode()


class Page:
    """A tab of the browser. `events` has what happened since it was last cleared."""

    def __init__(self, browser, url):
        self.browser, self.socket, self.number, self.events = browser, Socket(url), 0, []
        for domain in ["Page", "Runtime", "Network", "Performance", "Log"]:
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            if "method" in message:
                self.event(message)

    def event(self, message):
        self.events.append(message)
        if message["method"] == "Page.javascriptDialogOpening":
            # Nothing else runs until it is closed.
            self.number += 1
            self.socket.send(json.dumps({"id": self.number, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}}))

    def evaluate(self, script):
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description") or details.get("text"))
        return answer["result"].get("value")

    def open(self, url):
        self.events.clear()
        # Another place of the same page is not loaded again.
        is_new = "loaderId" in self.call("Page.navigate", url=url)
        while is_new and not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.event(json.loads(self.socket.receive()))

    def wait_for(self, script, seconds=20):
        """Waits until an expression is true, and returns its value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.evaluate(script)
            if value:
                return value
            time.sleep(0.02)
        raise TimeoutError(script)

    def size(self, width, height, dark=False, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def key(self, key, modifiers=0):
        text = key if len(key) == 1 else "\r" if key == "Enter" else ""
        codes = {"Enter": 13, "Escape": 27, "Tab": 9}
        more = {"windowsVirtualKeyCode": codes[key]} if key in codes else {}
        if text and not modifiers:
            more["text"] = text
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, modifiers=modifiers, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=modifiers)

    def metrics(self):
        return {metric["name"]: metric["value"] for metric in self.call("Performance.getMetrics")["metrics"]}

    def requests(self):
        """Returns the requested addresses, without those inside of the page."""
        sent = (event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent")
        return [url for url in sent if not url.startswith(("data:", "blob:"))]

    def dialogs(self):
        return [event["params"] for event in self.events if event["method"] == "Page.javascriptDialogOpening"]


class Browser(contextlib.AbstractContextManager):
    def __init__(self, *arguments):
        self.folder = tempfile.mkdtemp(prefix="transcript-browser-")
        self.process = subprocess.Popen(
            [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--remote-debugging-port=0",
             "--disable-background-networking", "--disable-extensions", "--remote-allow-origins=*", f"--user-data-dir={self.folder}", *arguments, "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ready = pathlib.Path(self.folder, "DevToolsActivePort")
        for _ in range(600):
            if ready.exists() and len(ready.read_text().split()) == 2:
                break
            if self.process.poll() is not None:
                raise RuntimeError("the browser does not start")
            time.sleep(0.05)
        self.port, path = ready.read_text().split()
        self.socket, self.number = Socket(f"ws://127.0.0.1:{self.port}{path}"), 0

    def call(self, method, **params):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.number:
                return message["result"]

    def page(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        return Page(self, f"ws://127.0.0.1:{self.port}/devtools/page/{target}")

    def __exit__(self, *_):
        with contextlib.suppress(Exception):
            self.call("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
