#!/usr/bin/env python3
"""Kills `transcript keep` and `transcript restore` at random moments, on the disk of this machine.

    experiments/archive_kill.py BINARY [ROUNDS]

Each round changes some sessions (appends, tears, cuts, replaces, forks), starts a capture, and kills it after a random time. Then the
archive must have no damage, and each session must be restored as it was at the last capture that ended by itself, or as it is
now. Restores are killed as well: no file of theirs may be there in part.
"""
import argparse, os, random, shutil, subprocess, tempfile, uuid

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("binary", help="the command transcript")
arguments.add_argument("rounds", nargs="?", type=int, default=200)
given = arguments.parse_args()
binary, rounds = given.binary, given.rounds
rng = random.Random(1)
place = tempfile.mkdtemp()
root = os.path.join(place, "projects")
project = os.path.join(root, "-p")
os.makedirs(project)
environment = dict(os.environ, TRANSCRIPT_ARCHIVE=os.path.join(place, "archive"))


def line():
    text = " ".join(f"{rng.getrandbits(32):x}" for _ in range(rng.choice((5, 50, 500))))
    return f'{{"uuid":"{uuid.UUID(int=rng.getrandbits(128))}","text":"{text}"}}\n'.encode()


def start(*arguments):
    return subprocess.Popen([binary, *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def run(*arguments):
    return subprocess.run([binary, *arguments], env=environment, capture_output=True)


def read_all(folder):
    files = {}
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if name.endswith(".jsonl"):
            with open(os.path.join(folder, name), "rb") as file:
                files[name] = file.read()
    return files


def change():
    names = sorted(os.listdir(project))
    for _ in range(rng.randint(1, 6)):
        path = os.path.join(project, rng.choice(names) if names and rng.random() < 0.8 else f"{uuid.UUID(int=rng.getrandbits(128))}.jsonl")
        lines = b"".join(line() for _ in range(rng.choice((1, 3, 300))))
        what = rng.random()
        if what < 0.1 and os.path.exists(path):
            os.truncate(path, rng.randint(0, os.path.getsize(path)))
        elif what < 0.2:
            with open(path, "wb") as file:
                file.write(lines)
        elif what < 0.3 and names:
            source = os.path.join(project, rng.choice(names))
            if source != path:
                shutil.copy(source, path)
        else:
            with open(path, "ab") as file:
                file.write(lines[: rng.randint(1, len(lines))] if rng.random() < 0.2 else lines)


known, killed, killed_restores = {}, 0, 0
for number in range(rounds):
    change()
    now = read_all(project)
    process = start("keep", "--root", root)
    try:
        code = process.wait(timeout=rng.uniform(0, 0.15))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        code, killed = None, killed + 1
    if os.path.exists(os.path.join(place, "archive", "archive.json")):
        checked = run("verify", "--archive")
        assert checked.returncode == 0, (number, checked.stdout, checked.stderr)
        back = os.path.join(place, "back", "projects")
        shutil.rmtree(os.path.dirname(back), ignore_errors=True)
        restore = start("restore", "--all", "--to", back)
        try:
            restore.wait(timeout=rng.uniform(0, 0.05))
        except subprocess.TimeoutExpired:
            restore.kill()
            restore.wait()
            killed_restores += 1
        for name, content in read_all(os.path.join(back, "-p")).items():
            assert content in (known.get(name), now.get(name)), (number, name, "in part")
        done = run("restore", "--all", "--to", back)
        assert done.returncode == 0, (number, done.stderr)
        found = read_all(os.path.join(back, "-p"))
        for name, content in known.items():
            assert found.get(name) in (content, now.get(name)), (number, name, "lost")
        if code == 0:
            assert {name: found.get(name) for name in now} == now, (number, "a capture that ended is incomplete")
        known = found
    assert code in (0, None), (number, code)
shutil.rmtree(place)
print(f"{rounds} captures, {killed} of them killed, {killed_restores} restores killed: nothing lost")
