#!/usr/bin/env python3
"""Write the types of records for Python and TypeScript from the schema of all operations.

Reads `docs/operations.json`, which a test of `transcript-ops` writes, and writes `records.py` of the Python package and
`records.d.ts` of the Node package. With --check it writes nothing, and fails if one of them is not up to date, or if one of
the packages lacks an option of an operation.
"""

import argparse
import json
import keyword
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "docs/operations.json"
PYTHON = ROOT / "bindings/python/python/transcript_engine/records.py"
NODE = ROOT / "bindings/node/records.d.ts"

# Types of the package that have names of their own.
NAMES = {"MessageRecord", "SessionInfo"}

PYTHON_HEAD = '''"""The types of records, written by ``tools/bindings_types.py`` from ``docs/operations.json``.

Records are dictionaries: these types only say what they have. Later versions may add fields and kinds.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Union

'''
NODE_HEAD = """/**
 * The types of records, written by `tools/bindings_types.py` from `docs/operations.json`. Later versions may add fields and
 * kinds.
 */
"""
PYTHON_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
NODE_SCALARS = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def name_of(reference):
    return reference.rsplit("/", 1)[1]


def reachable(schema):
    """Return the names of the definitions that records and answers use."""
    used = set()
    wanted = [record for operation in schema["operations"].values() for record in operation["records"]]
    wanted += [schema["failure"], *schema["$defs"]["Answer"]["properties"].values()]
    while wanted:
        value = wanted.pop()
        if isinstance(value, list):
            wanted += value
        elif isinstance(value, dict):
            reference = value.get("$ref")
            if reference and name_of(reference) not in used:
                used.add(name_of(reference))
                wanted.append(schema["$defs"][name_of(reference)])
            wanted += [part for key, part in value.items() if key != "$ref"]
    return sorted(used - NAMES)


def kinds(schema, used):
    """Return for each definition the values of `kind` that tell it apart from others of a union."""
    found = {}
    for name in used:
        for variant in variants(schema["$defs"][name]):
            tag = variant.get("properties", {}).get("kind", {}).get("const")
            if tag and "$ref" in variant:
                found.setdefault(name_of(variant["$ref"]), []).append(tag)
    return found


def variants(definition):
    return definition.get("oneOf") or definition.get("anyOf") or []


def prose(text):
    """Return a description without the notation of Rust."""
    text = re.sub(r"\[`?(?:Self::)?([^`\]]+)`?\](?:\([^)]*\))?", lambda match: match[1].replace("`", ""), text or "")
    text = re.sub(r"`None`", "`null`", text)
    return " ".join(text.split()).replace("*/", "* /")


class Language:
    """How types are written in a language."""

    def __init__(self, scalars, any_type, array, table, literal, union):
        self.scalars, self.any_type = scalars, any_type
        self.array, self.table, self.literal, self.union = array, table, literal, union

    def type(self, schema):
        if schema is True or not schema:
            return self.any_type
        if "$ref" in schema:
            name = name_of(schema["$ref"])
            return self.any_type if name in NAMES else name
        if "const" in schema:
            return self.literal(schema["const"])
        if "enum" in schema:
            return self.union([self.literal(value) for value in schema["enum"]])
        if variants(schema):
            return self.union([self.type(variant) for variant in variants(schema)])
        types = schema.get("type")
        if types is None:
            return self.any_type
        return self.union([self.one(kind, schema) for kind in ([types] if isinstance(types, str) else types)])

    def one(self, kind, schema):
        if kind == "array":
            items = schema.get("items", True)
            return self.array(self.type(items))
        if kind == "object":
            values = schema.get("additionalProperties", True)
            return self.table(self.type(values))
        return self.scalars[kind]


def distinct(types):
    return list(dict.fromkeys(types))


LANGUAGES = {
    "python": Language(
        PYTHON_SCALARS,
        "Any",
        lambda item: f"list[{item}]",
        lambda value: f"dict[str, {value}]",
        lambda value: f"Literal[{json.dumps(value)}]",
        lambda types: " | ".join(distinct(types)),
    ),
    "node": Language(
        NODE_SCALARS,
        "unknown",
        lambda item: f"({item})[]" if " " in item else f"{item}[]",
        lambda value: f"Record<string, {value}>",
        lambda value: "'" + str(value) + "'" if isinstance(value, str) else json.dumps(value),
        lambda types: " | ".join(distinct(types)),
    ),
}


def fields(schema, name, tags):
    """Return name, schema, and whether it is always there, of each field."""
    definition = schema["$defs"][name]
    required = set(definition.get("required", []))
    found = []
    if name in tags:
        found.append(("kind", {"enum": distinct(tags[name]), "description": "The kind of the record."}, True))
    for field, value in definition.get("properties", {}).items():
        found.append((field, value, field in required))
    return found


def is_record(definition):
    return definition.get("type") == "object" and "properties" in definition


def python(schema):
    used, tags, language = reachable(schema), kinds(schema, reachable(schema)), LANGUAGES["python"]
    parts = [PYTHON_HEAD]
    unions = []
    for name in used:
        definition = schema["$defs"][name]
        if not is_record(definition):
            unions.append(f"{name} = {python_union(definition, language)}\n")
            if definition.get("description"):
                unions.append(f'"""{prose(definition["description"])}"""\n')
            unions.append("\n")
            continue
        parts.append(python_class(schema, name, tags, language))
    return "\n\n\n".join(part.rstrip("\n") for part in parts) + "\n\n\n" + "".join(unions).rstrip("\n") + "\n"


def python_union(definition, language):
    types = [language.type(variant) for variant in variants(definition)] or [language.type(definition)]
    types = distinct(types)
    if all(kind.startswith("Literal[") for kind in types):
        return "Literal[" + ", ".join(kind[8:-1] for kind in types) + "]"
    return f"Union[{', '.join(types)}]" if len(types) > 1 else types[0]


def python_class(schema, name, tags, language):
    """Return a class: the fields that are always there are in a base class."""
    all_fields = fields(schema, name, tags)
    required = [field for field in all_fields if field[2]]
    optional = [field for field in all_fields if not field[2]]
    text = ""
    base = "TypedDict"
    # A class cannot have a field whose name is a keyword of Python.
    keywords = [field for field in all_fields if keyword.iskeyword(field[0])]
    if keywords:
        base = f"_{name}Keywords"
        pairs = ", ".join(f'"{field}": "{language.type(value)}"' for field, value, _ in keywords)
        text += f'{base} = TypedDict("{base}", {{{pairs}}})\n\n\n'
        required, optional = ([field for field in some if field not in keywords] for some in (required, optional))
    if required and optional:
        inherited, base = base, f"_{name}"
        text += f"class {base}({inherited}):\n" + python_fields(required, language) + "\n\n"
    total = ", total=False" if optional else ""
    text += f"class {name}({base}{total}):\n"
    text += f'    """{prose(schema["$defs"][name].get("description"))}"""\n\n'
    return text + python_fields(optional or required, language)


def python_fields(given, language):
    text = ""
    for field, value, _ in given:
        text += f"    {field}: {language.type(value)}\n"
        if isinstance(value, dict) and value.get("description"):
            text += f'    """{prose(value["description"])}"""\n'
    return text or "    pass\n"


def node(schema):
    used, tags, language = reachable(schema), kinds(schema, reachable(schema)), LANGUAGES["node"]
    parts = [NODE_HEAD]
    for name in used:
        definition = schema["$defs"][name]
        text = f"/** {prose(definition.get('description'))} */\n"
        if not is_record(definition):
            parts.append(text + f"export type {name} = {language.union([language.type(v) for v in variants(definition)] or [language.type(definition)])};\n")
            continue
        text += f"export interface {name} {{\n"
        for field, value, is_required in fields(schema, name, tags):
            if isinstance(value, dict) and value.get("description"):
                text += f"  /** {prose(value['description'])} */\n"
            text += f"  {field}{'' if is_required else '?'}: {language.type(value)};\n"
        parts.append(text + "}\n")
    return "\n".join(parts)


def missing_options(schema):
    """Yield the options of operations that a package has no name for: what one language has, all have."""
    folder = PYTHON.parent
    package = "\n".join((folder / name).read_text(encoding="utf-8") for name in ("_functions.py", "_sdk.py"))
    types = (NODE.parent / "index.d.ts").read_text(encoding="utf-8") + (NODE.parent / "lib/sdk.js").read_text(encoding="utf-8")
    for name, operation in schema["operations"].items():
        for option in [*operation["options"].get("properties", {}), *operation["place"]]:
            if option == "function":
                continue
            if not re.search(rf'"{option}"|\b{option}=', package):
                yield f"Python has no option {option} of {name}"
            if not re.search(rf"\b{option}\b", types):
                yield f"Node has no option {option} of {name}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is not up to date")
    given = parser.parse_args()
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    stale = []
    for path, text in ((PYTHON, python(schema)), (NODE, node(schema))):
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path)
        if not given.check:
            path.write_text(text, encoding="utf-8")
    missing = list(missing_options(schema))
    if missing and given.check:
        sys.exit("\n".join(missing))
    if stale and given.check:
        names = ", ".join(str(path.relative_to(ROOT)) for path in stale)
        sys.exit(f"not up to date: {names}; python3 tools/bindings_types.py writes them")


if __name__ == "__main__":
    main()
