#!/usr/bin/env python3
"""validate_request.py [FILE ...]   would a strict Messages API take these requests?

Each file, or standard input, holds arrays of messages: one JSON array a line, or a single one. Prints
`request N, message M: what is wrong`, both counted from 1, and exits 1 when something is."""
import base64, json, re, sys, zlib

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__)
    sys.exit()

SPACE = "".join(c for c in map(chr, range(0x3001)) if c.isspace()) + "\ufeff"
FOLLOWS = {None: "user", "user": "assistant system", "system": "assistant", "assistant": "user"}
PLACES = {"text": "user assistant system result", "image": "user result", "document": "user result", "tool_result": "user",
          "search_result": "user result", "thinking": "assistant", "redacted_thinking": "assistant", "tool_use": "assistant"}  # "result": inside of one
API_TOOL = "server_tool_use|mcp_tool_use|.+_tool_result"

def get(value, key):
    return value[key] if isinstance(value, dict) and isinstance(value.get(key), str) else ""

def is_damaged_png(data):
    at, kinds = 8, []
    while kinds[-1:] != [b"IEND"]:
        size, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        end = at + 8 + size
        if len(data) < end + 4 or kind[:1].isupper() and zlib.crc32(data[at + 4 : end]) != int.from_bytes(data[end : end + 4], "big"):
            return True
        at, kinds = end + 4, kinds + [kind]
    return b"IDAT" not in kinds

def is_damaged_pdf(data):
    return b"%PDF-" not in data[:1024] or b"obj" not in data or b"%%EOF" not in data[data.rfind(b"startxref") :] or b"startxref" not in data

def bytes_faults(data, is_image):
    try:
        data = base64.b64decode(data, validate=True)
    except ValueError:
        return ["an image or document is not base64"]
    is_png = data.startswith(b"\x89PNG\r\n\x1a\n")
    return ["an image or document is damaged"] if (is_png and is_damaged_png(data) if is_image else is_damaged_pdf(data)) else []

def media_faults(block):
    source, is_image = block.get("source"), block["type"] == "image"
    data, is_coded = get(source, "data"), get(source, "type") == "base64"
    if not isinstance(source, dict) or (is_coded or get(source, "type") == "text") and not data:
        return ["an image or document without data"]
    if is_image and data and get(source, "media_type") not in ("image/jpeg", "image/png", "image/gif", "image/webp"):
        return ["an image of an unknown type"]
    size = len(data.rstrip("=")) * 3 // 4 if is_coded else len(data.encode("utf-8", "replace"))
    if size > (32 if is_coded and not is_image else 5) << 20:
        return ["an image or document is too large"]
    return bytes_faults(data, is_image) if is_coded else []

def block_faults(block, place):
    kind = get(block, "type")
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        return ["a block is no object with a type"]
    if place not in PLACES.get(kind, "assistant" if re.fullmatch(API_TOOL, kind) else "user assistant result").split():
        return [f"a block of kind {kind} stands in the wrong place"]
    is_call, is_result, content = kind in ("tool_use", "server_tool_use"), kind == "tool_result", block.get("content", "")
    inner = [fault for b in content for fault in block_faults(b, "result")] if is_result and isinstance(content, list) else []
    return inner + [what for what, is_so in {
        "a text is blank": kind == "text" and not get(block, "text").strip(SPACE),
        "the id of a call is invalid": is_call and not re.fullmatch("[A-Za-z0-9_-]+", get(block, "id")),
        "a call has no name": is_call and not get(block, "name"),
        "the name of a call is too long": is_call and len(get(block, "name")) > 200,
        "the input of a call is no object": is_call and not isinstance(block.get("input"), dict),
        "a thought is not signed": kind in ("thinking", "redacted_thinking") and not get(block, "signature" if kind == "thinking" else "data"),
        "a result is neither text nor list": is_result and not isinstance(content, (str, list)),
        "an error says nothing": is_result and block.get("is_error") is True and not content,
    }.items() if is_so] + (media_faults(block) if kind in ("image", "document") else [])

def strings(value):
    inner = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return [value] if isinstance(value, str) else [string for part in inner for string in strings(part)]

def faults(messages):
    said, before, used, wanted = [] if messages else [(0, "there are no messages")], None, set(), []
    for at, message in enumerate([*messages, {"role": "end", "content": "-"}], 1):
        role, content = message["role"], message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        kinds, end = [get(block, "type") for block in blocks], get((blocks or [0])[-1], "text")
        calls, results = ([get(b, "id") + get(b, "tool_use_id") for b in blocks if get(b, "type") == kind] for kind in ("tool_use", "tool_result"))
        api = [(k.endswith("use"), get(b, "id" if k.endswith("use") else "tool_use_id")) for k, b in zip(kinds, blocks) if re.fullmatch(API_TOOL, k)]
        said += [(at, what) for what, is_so in {
            f"{role} follows {before or 'nothing'}": role != "end" and role not in FOLLOWS.get(before, "").split(),
            "a message is empty": not blocks,
            "a string holds NUL or half of a surrogate pair": any(re.search("[\0\ud800-\udfff]", s) for s in strings(blocks)),
            "two calls have one id": len(set(calls)) < len(calls) or used & set(calls),
            "a call has no result": role != "system" and set(wanted) - set(results),
            "a result has no call in the message before": set(results) - set(wanted),
            "two results for one call": len(set(results)) < len(results),
            "a result is not at the front": kinds[:len(results)] != ["tool_result"] * len(results),
            "a tool of the API lacks its call or result": any((not is_use, id) not in (api[n:] if is_use else api[:n]) for n, (is_use, id) in enumerate(api)),
            "thinking comes last": role == "assistant" and "thinking" in (kinds or [""])[-1],
            "white space at the very end": role == "assistant" and at == len(messages) and end != end.rstrip(SPACE)}.items() if is_so]
        said += [(at, what) for block in blocks if role != "end" for what in block_faults(block, role)]
        before, used, wanted = role, used | set(calls), calls if role != "system" else wanted
    return said

if __name__ == "__main__":
    sys.setrecursionlimit(10_000)
    texts = [open(file, "rb").read() for file in sys.argv[1:]] or [sys.stdin.buffer.read()]
    requests = [line for text in texts for line in text.split(b"\n") if line.strip()]
    said = [f"request {n}, message {at}: {what}" for n, line in enumerate(requests, 1) for at, what in faults(json.loads(line))]
    print(*said, sep="\n", end="\n" * bool(said))
    sys.exit(bool(said))
