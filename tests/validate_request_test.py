#!/usr/bin/env python3
"""tests/validate_request_test.py

Plants bad requests and shows that `validate_request.py` refuses each for its own reason, and takes the good ones."""
import argparse, json, os, subprocess, sys

VALIDATOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "validate_request.py")
TEXT = {"type": "text", "text": "hi"}
CALL = {"type": "tool_use", "id": "a", "name": "Read", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "out"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
SEARCH = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def answer(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def system(text):
    return {"role": "system", "content": text}


def image(data, media_type="image/png"):
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def called(call, result=RESULT):
    return [user(TEXT), answer(call), user(result)]


GOOD = [
    [{"role": "user", "content": "hi"}],
    [user(TEXT, image("AAAA")), system("note"), answer(THOUGHT, TEXT, CALL), user(RESULT, TEXT), answer(SEARCH, FOUND, TEXT)],
    called(CALL, {**RESULT, "content": [TEXT, image("AAAA")], "is_error": True}),
    [user(TEXT), answer({**THOUGHT, "thinking": ""}, {"type": "redacted_thinking", "data": "x"}, TEXT)],
]
BAD = {
    "there are no messages": [],
    "assistant follows nothing": [answer(TEXT)],
    "user follows user": [user(TEXT), user(TEXT)],
    "assistant follows assistant": [user(TEXT), answer(TEXT), answer(TEXT)],
    "system follows assistant": [user(TEXT), answer(TEXT), system("note")],
    "a message is empty": [user()],
    "a text is blank": [user(TEXT, {**TEXT, "text": " \n"})],
    "a block is no object with a type": [user(TEXT, "bare")],
    "a block of kind thinking stands in the wrong place": [user(THOUGHT)],
    "a block of kind image stands in the wrong place": [user(TEXT), answer(image("AAAA"))],
    "a string holds NUL or half of a surrogate pair": called({**CALL, "input": {"x": ["\ud83d"]}}),
    "the id of a call is invalid": called({**CALL, "id": "a b"}, {**RESULT, "tool_use_id": "a b"}),
    "a call has no name": called({**CALL, "name": ""}),
    "the name of a call is too long": called({**CALL, "name": "x" * 201}),
    "the input of a call is no object": called({**CALL, "input": "{}"}),
    "two calls have one id": [*called(CALL), answer(CALL), user(RESULT)],
    "a call has no result": [user(TEXT), answer(CALL), user(TEXT)],
    "a result has no call in the message before": [user(TEXT), answer(TEXT), user(RESULT)],
    "two results for one call": [user(TEXT), answer(CALL), user(RESULT, RESULT)],
    "a result is not at the front": [user(TEXT), answer(CALL), user(TEXT, RESULT)],
    "a result is neither text nor list": called(CALL, {**RESULT, "content": None}),
    "an error says nothing": called(CALL, {**RESULT, "content": "", "is_error": True}),
    "a block of kind tool_use stands in the wrong place": called(CALL, {**RESULT, "content": [CALL]}),
    "a tool of the API lacks its call or result": [user(TEXT), answer(SEARCH, TEXT)],
    "a thought is not signed": [user(TEXT), answer({**THOUGHT, "signature": ""}, TEXT)],
    "thinking comes last": [user(TEXT), answer(TEXT, THOUGHT)],
    "white space at the very end": [user(TEXT), answer({**TEXT, "text": "so: "})],
    "an image or document without data": [user(image(""))],
    "an image of an unknown type": [user(image("AAAA", "image/bmp"))],
    "an image or document is too large": [user(image("A" * (7 << 20)))],
}


def run(requests):
    lines = "\n".join(json.dumps(request) for request in requests)
    done = subprocess.run([sys.executable, VALIDATOR], input=lines.encode(), capture_output=True)
    assert not done.stderr, done.stderr.decode()
    return done.returncode, done.stdout.decode().splitlines()


argparse.ArgumentParser(description=__doc__.split("\n\n")[1]).parse_args()
status, said = run(GOOD)
assert (status, said) == (0, []), said
for reason, request in BAD.items():
    status, said = run([request])
    reasons = [line.split(": ", 1)[1] for line in said]
    assert (status, reasons) == (1, [reason]), (reason, status, said)
status, said = run([*GOOD, BAD["a message is empty"], GOOD[0]])
assert (status, said) == (1, ["request 5, message 1: a message is empty"]), said
print(f"validate_request: {len(GOOD)} good requests taken, {len(BAD)} bad ones refused, each for its own reason")
