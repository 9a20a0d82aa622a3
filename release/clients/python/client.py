"""Continues a session, or begins it: a prompt and a scripted reply, acknowledged one by one."""
import os
import sys

from transcript_engine import Session

path = sys.argv[1]
options = {"cwd": "/work", "version": "1.0.0"}
if os.path.exists(path):
    session = Session.resume(path, **options)
    before = len(session.resumed.request["messages"])
else:
    session = Session.create(path, **options)
    before = 0
with session:
    session.append(user="Which years have a leap day?")
    content = [{"type": "text", "text": "Python: most fourth ones."}]
    session.append(assistant={"id": "msg_python", "type": "message", "role": "assistant", "model": "scripted", "content": content})
    after = len(session.request()["messages"])
print(f"resumed with {before} messages, closed with {after}")
