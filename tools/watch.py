#!/usr/bin/env python3
"""tools/watch.py poll|watchdog FILE COUNT QUIET

Reads a growing file as Python programs commonly do, for benches/latency.rs of transcript-tail: polls every 100 ms, or when
`watchdog` reports an event. Prints "ready" after the first line. After COUNT more lines (or QUIET seconds without any) prints
how many were read, whether they were in order, the number of wake-ups, the peak memory in KiB before and after, and for each
line the nanoseconds from its write until it was read."""
import argparse, threading, time

def status(name, of="self"):
    with open("/proc/%s/status" % of) as f:
        return next(int(line.split()[1]) for line in f if line.startswith(name + ":"))


def wait_poll():
    time.sleep(0.1)


def wait_watchdog(path):
    from watchdog.events import FileSystemEventHandler
    from watchdog.observers import Observer
    changed = threading.Event()

    class Handler(FileSystemEventHandler):
        def on_modified(self, event):
            changed.set()

    observer = Observer()
    observer.daemon = True
    observer.schedule(Handler(), path.rpartition("/")[0])
    observer.start()

    def wait():
        changed.wait(1)
        changed.clear()
    return wait


def lines(path, wait, quiet):
    rest, last = b"", time.monotonic()
    with open(path, "rb") as f:
        while time.monotonic() - last < quiet:
            block = f.read(1 << 20)
            if not block:
                wait()
                continue
            *whole, rest = (rest + block).split(b"\n")
            yield from whole
            last = time.monotonic()


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("way", choices=["poll", "watchdog"])
    a.add_argument("file")
    a.add_argument("count", type=int, help="number of lines to read")
    a.add_argument("quiet", type=int, help="seconds without a line after which it ends")
    o = a.parse_args()
    path, count, quiet = o.file, o.count, o.quiet
    wait = wait_watchdog(path) if o.way == "watchdog" else wait_poll
    seen, ordered, woken, before, waits = 0, True, [2**64 - 1] * count, 0, 0
    for line in lines(path, wait, quiet):
        now, number = time.monotonic_ns(), int(line[34:44])
        if number == 0:
            before, waits = status("VmHWM"), status("voluntary_ctxt_switches", "thread-self")
            print("ready", flush=True)
            continue
        seen += 1
        ordered = ordered and number == seen
        woken[number - 1] = now - int(line[7:27])
        if number == count:
            break
    waits = status("voluntary_ctxt_switches", "thread-self") - waits
    print(seen, ordered, waits, before, status("VmHWM"))
    for nanoseconds in woken:
        print(nanoseconds)


main()
