#!/usr/bin/env python3
"""Measures full-screen programs on a terminal: the time to the first screen, to each key, and the memory.

    experiments/browse_speed.py target/release/transcript SESSION.jsonl [less claude-history=fork …]

Each program runs on a pseudo-terminal of 100 columns and 40 rows, seven times, or as often as a minute allows. The
first screen is complete when nothing was written for 30 ms after something of the text was; the time is that of the last
write. A key is answered when the program writes again. Other programs get the path of the file as their argument; after
`=` is a word of their first screen, for those that write something else before.
"""
import argparse, fcntl, os, pty, select, signal, statistics, struct, subprocess, termios, time

KEYS = ["k", "k", "b", "b", "k", " ", "u", "d", "b", "b", "j", "k"]


def read_until_quiet(fd, quiet, limit):
    """Returns the output, and the time of its last write."""
    out, last, end = b"", None, time.monotonic() + limit
    while time.monotonic() < end:
        ready, _, _ = select.select([fd], [], [], quiet if out else limit)
        if not ready:
            break
        try:
            more = os.read(fd, 65536)
        except OSError:
            break
        if not more:
            break
        out, last = out + more, time.monotonic()
    return out, last


def run(command, mark):
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", LESS="", CLAUDE_CONFIG_DIR="/nonexistent")
        os.execvp(command[0], command)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    start = time.monotonic()
    out, shown = b"", None
    while time.monotonic() < start + 60 and (not out or mark not in out):
        more, last = read_until_quiet(fd, 0.03, 30)
        if not more:
            break
        out, shown = out + more, last
    first = (shown or start) - start
    # Until everything is read.
    time.sleep(max(0.5, 3 * first))
    read_until_quiet(fd, 0.5, 5)
    times = []
    for key in KEYS * 2:
        sent = time.monotonic()
        os.write(fd, key.encode())
        if select.select([fd], [], [], 0.3)[0]:
            os.read(fd, 65536)
            times.append(time.monotonic() - sent)
        read_until_quiet(fd, 0.02, 0.2)
    memory = 0
    try:
        with open(f"/proc/{pid}/status") as status:
            memory = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    except OSError:
        pass
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    os.close(fd)
    return first, times, memory


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("binary", help="the command transcript")
    a.add_argument("session")
    a.add_argument("others", nargs="*", metavar="program[=word]", help="programs to compare with")
    o = a.parse_args()
    binary, path, others = o.binary, o.session, o.others
    with open(path, "rb") as file:
        lines = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    print(f"{path}: {os.path.getsize(path)} bytes, {lines} lines; "
          f"96 bytes a line + 32 MiB = {lines * 96 / 1048576 + 32:.0f} MiB")
    programs = {"transcript browse": ([binary, "browse", path], "›".encode())}
    for other in others:
        name, _, mark = other.partition("=")
        programs[name] = ([name, path], mark.encode())
    for name, (command, mark) in programs.items():
        if subprocess.run(["which", command[0]], capture_output=True).returncode:
            print(f"{name}: not installed")
            continue
        firsts, keys, memories = [], [], []
        start = time.monotonic()
        while len(firsts) < 7 and (not firsts or time.monotonic() < start + 60):
            first, times, memory = run(command, mark)
            firsts.append(first)
            keys += times
            memories.append(memory)
        keys.sort()
        print(f"{name}: first screen {statistics.median(firsts) * 1000:.0f} ms; keys median "
              f"{statistics.median(keys) * 1000:.1f} ms, 95 % {keys[len(keys) * 95 // 100] * 1000:.1f} ms, "
              f"all {keys[-1] * 1000:.1f} ms; peak {max(memories) / 1024:.0f} MiB; {len(firsts)} runs")


main()
