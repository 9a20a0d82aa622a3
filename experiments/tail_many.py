#!/usr/bin/env python3
"""experiments/tail_many.py [--bin BINARY] [--files 24000] [--lines 300] [--seed 1]

Follows a folder of many sessions with `transcript tail -f --json -n 0`, and appends lines to random ones: first while they are still being
opened, then when they are. Prints how many lines were lost or emitted twice, how long it took to open the files, the time from a write until
the line was emitted (median and longest), and for ten seconds without a write the processor time and the wake-ups of all threads."""
import argparse, json, os, pathlib, random, subprocess, sys, tempfile, threading, time


def line(number):
    return json.dumps({"type": "user", "uuid": "u%d" % number, "parentUuid": None, "sessionId": "s",
                       "message": {"role": "user", "content": "m%d" % number}}).encode() + b"\n"


class Follower:
    def __init__(self, binary, root):
        command = [binary, "tail", "-f", "--json", "-n", "0", str(root)]
        self.child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.emitted = {}
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for text in self.child.stdout:
            entry = json.loads(text)
            if entry.get("kind") == "entry":
                self.emitted.setdefault(entry["uuid"], []).append(time.monotonic())

    def spent(self):
        """Returns the processor seconds, and the number of wake-ups of all threads."""
        fields = pathlib.Path("/proc/%d/stat" % self.child.pid).read_text().rsplit(")", 1)[1].split()
        switches = 0
        for status in pathlib.Path("/proc/%d/task" % self.child.pid).glob("*/status"):
            switches += int(status.read_text().split("\nvoluntary_ctxt_switches:")[1].split()[0])
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), switches

    def wait(self, numbers, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end and any("u%d" % number not in self.emitted for number in numbers):
            time.sleep(0.02)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="target/release/transcript")
    parser.add_argument("--files", type=int, default=24_000)
    parser.add_argument("--lines", type=int, default=300, help="of each of the two parts")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    pick = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "projects"
        paths = [root / ("-p%d" % (number % 50)) / ("%08x-1111-4111-8111-111111111111.jsonl" % number) for number in range(args.files)]
        for number, path in enumerate(paths):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(line(number))
        follower = Follower(args.bin, root)
        started = time.monotonic()
        # Lines that are written before the folder is listed are old: the first emitted line shows that it was listed.
        number, first = args.files, []
        while not follower.emitted and time.monotonic() - started < 60:
            first.append(number)
            with open(pick.choice(paths), "ab") as file:
                file.write(line(number))
            number += 1
            time.sleep(0.002)
        written = {}

        def append(pause):
            nonlocal number
            for _ in range(args.lines):
                with open(pick.choice(paths), "ab") as file:
                    written[number] = time.monotonic()
                    file.write(line(number))
                number += 1
                time.sleep(pause)

        append(0.002)
        follower.wait(written)
        early = list(written)
        opened = max((follower.emitted["u%d" % one][0] for one in early if "u%d" % one in follower.emitted), default=started) - started
        # Opening is over when the processor is idle.
        before = -1.0
        while follower.spent()[0] - before > 0.02:
            before = follower.spent()[0]
            time.sleep(0.5)
        append(0.02)
        late = [one for one in written if one not in set(early)]
        follower.wait(late)
        time.sleep(2)
        processor, switches = follower.spent()
        time.sleep(10)
        idle = [now - then for now, then in zip(follower.spent(), (processor, switches))]
        threads = len(os.listdir("/proc/%d/task" % follower.child.pid))
        follower.child.terminate()
        follower.child.wait()
        lost = [one for one in written if "u%d" % one not in follower.emitted]
        doubled = [one for one in follower.emitted.values() if len(one) > 1]
        delays = lambda numbers: sorted(follower.emitted["u%d" % one][0] - written[one] for one in numbers if "u%d" % one in follower.emitted)
        print("%d files, lines %d, lost %d, doubled %d" % (args.files, len(written), len(lost), len(doubled)))
        for what, numbers in (("while files are opened", early), ("when they are open", late)):
            found = delays(numbers)
            if found:
                print("  emitted %s: median %.3f s, longest %.3f s" % (what, found[len(found) // 2], found[-1]))
        print("  the last early line emitted after %.1f s; 10 s without a write: %.2f s of processor, %d wake-ups, %d threads"
              % (opened, idle[0], idle[1], threads))
        sys.exit(1 if lost or doubled else 0)


if __name__ == "__main__":
    main()
