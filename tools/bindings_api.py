#!/usr/bin/env python3
"""Write the functions, the types and the reference of all operations, for Python and for Node, from their schema.

Reads `docs/operations.json`, which a test of `transcript-ops` writes. Writes

- `records.py` and `records.d.ts`: the types of records,
- `_functions.py` of the Python package: its functions,
- `lib/functions.js`, `lib/functions.mjs` and `lib/functions.d.ts` of the Node package: its functions, and their types,
- `docs/operations.md`: the reference.

The functions of the official SDKs (`SDK`) are written by hand, as the SDKs set their signatures: each is compared with its
operation. With --check nothing is written; it fails if a file is not up to date, or a function of the SDKs has not the options
of its operation.
"""

import argparse
import ast
import json
import keyword
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "docs/operations.json"
PYTHON = ROOT / "bindings/python/python/transcript_engine"
NODE = ROOT / "bindings/node"
REFERENCE = ROOT / "docs/operations.md"

# Types of the package that have names of their own.
NAMES = {"MessageRecord", "SessionInfo"}

PYTHON_HEAD = '''"""The types of records, written by ``tools/bindings_api.py`` from ``docs/operations.json``.

Records are dictionaries: these types only say what they have. Later versions may add fields and kinds.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Union

'''
NODE_HEAD = """/**
 * The types of records, written by `tools/bindings_api.py` from `docs/operations.json`. Later versions may add fields and
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
    links = r"\[`(?:Self::)?([^`\]]+)`\](?:\([^)]*\))?|\[([^`\]]+)\]\([^)]*\)"
    text = re.sub(links, lambda match: match[1] or match[2], text or "")
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
        lambda value: f"Literal[{python_value(value)}]",
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


# What the schema does not say, and why.

# Options that are paths, or names that may be paths: JSON has only strings. Of a list, its items.
PATHS = {"archive", "directory", "identity", "in", "new", "old", "out", "prices", "project", "root", "session"}
# Types of options that the packages name.
NAMED_TYPES = {"policy": "Policy", "provider": "Provider"}
# `from` is a keyword of Python, so both packages call it `start`; `in` is one, too, and an argument without a keyword. `new` is a
# keyword of JavaScript.
NEW_NAMES = {
    "python": {"from": "start", "in": "places"},
    "node": {"from": "start", "new": "newFolder", "old": "oldFolder"},
}
# `list` is a type of Python, which a star import must not hide; `export` is a keyword of JavaScript.
FUNCTION_NAMES = {"python": {"list": "sessions"}, "node": {"export": "exportSession"}}
# `watch(a, b)` takes its places one by one in Python.
SPREAD = {"watch"}
# The archive is what is listed: it comes first, and that of the user is the default.
FIRST_OPTION = {"listArchived": ("archive", True)}
# The type of the result for a value of an option, where TypeScript can know it.
OVERLOADS = {"repair": [("undo", True, "UndoneRepair"), (None, None, "RepairReport")]}
# Options that several functions share are in an interface that these extend; each extends the one before it.
BASES = [("RootOptions", ["root"]), ("ArchiveOptions", ["archive", "identity"]), ("SelectionOptions", ["in", "project", "cache"])]
BASE_TEXTS = {
    "RootOptions": "The store in which sessions are looked up.",
    "ArchiveOptions": "The archive from which sessions are read.",
    "SelectionOptions": "The sessions to read.",
}

# The functions whose names, arguments and results the official SDKs set, by their operations.
SDK = {
    "listSessions": ["listSessions"],
    "getSessionInfo": ["getSessionInfo"],
    "getSessionMessages": ["getSessionMessages", "iterSessionMessages"],
    "listSubagents": ["listSubagents"],
    "getSubagentMessages": ["getSubagentMessages"],
    "renameSession": ["renameSession"],
    "tagSession": ["tagSession"],
    "deleteSession": ["deleteSession"],
    "forkSession": ["forkSession"],
    "setArchived": ["archiveSession", "unarchiveSession"],
}
# Options that a function has and its operation has not, or the reverse: the package, the function, the option, the reason.
SDK_EXCEPTIONS = {
    ("python", "getSubagentMessages", "compacted"): "it has no effect",
    ("python", "archiveSession", "archived"): "the name of the function is the value",
    ("python", "unarchiveSession", "archived"): "the name of the function is the value",
    ("node", "archiveSession", "archived"): "the name of the function is the value",
    ("node", "unarchiveSession", "archived"): "the name of the function is the value",
    ("node", "listSubagents", "limit"): "the package takes this part of the list",
    ("node", "listSubagents", "offset"): "the package takes this part of the list",
}

PYTHON_FUNCTIONS_HEAD = '"""The operations as functions, written by ``tools/bindings_api.py`` from ``docs/operations.json``."""\n'
NODE_FUNCTIONS_HEAD = "// The operations as functions, written by `tools/bindings_api.py` from `docs/operations.json`.\n"
REFERENCE_HEAD = """# Operations

Everything that can be asked about sessions and done with them, as functions of the packages for
[Python](../bindings/python/README.md) and [Node](../bindings/node/README.md), and as JSON. `tools/bindings_api.py` writes this page
from [operations.json](operations.json), the schema of the operations, their options and their records; a test of `transcript-ops`
writes that from the types. [bindings.md](bindings.md) says how functions run, [cli.md](cli.md) what the records of the commands mean.

As JSON, an operation is an object with its name as `function` and its options. An option without a value (`null`, `None`,
`undefined`) has its default. What an operation does not know is refused, by its name. Where an error has a kind, it is the `kind` of
the exception.
"""


def python_value(value):
    return repr(value) if isinstance(value, bool) or value is None else json.dumps(value)


def snake(name):
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match[1].lower(), name)


class Option:
    """An option of an operation."""

    def __init__(self, schema, name, value, required):
        self.name, self.description, self.is_required = name, value.get("description", ""), required
        self.default = value.get("default")
        self.types = list(self.variants_of(schema, value))

    def variants_of(self, schema, value):
        """Yield the types of the values that are not null: a scalar of JSON, or a list, or an enumeration of values."""
        if "$ref" in value:
            yield from self.variants_of(schema, schema["$defs"][name_of(value["$ref"])])
        elif variants(value):
            parts = variants(value)
            constants = [part["const"] for part in parts if "const" in part]
            if constants:
                yield constants
            for part in parts:
                if "const" not in part:
                    yield from self.variants_of(schema, part)
        elif "enum" in value:
            yield [constant for constant in value["enum"] if constant is not None]
        else:
            types = value["type"]
            yield from (kind for kind in ([types] if isinstance(types, str) else types) if kind != "null")

    @property
    def is_list(self):
        return "array" in self.types

    @property
    def is_path(self):
        return self.name in PATHS

    def new_name(self, language):
        name = NEW_NAMES[language].get(self.name, self.name)
        return snake(name) if language == "python" else name

    def type(self, language):
        """Return the type of the option for a language."""
        if self.name in NAMED_TYPES:
            return NAMED_TYPES[self.name]
        found = []
        for kind in self.types:
            if isinstance(kind, list):
                literals = [LANGUAGES[language].literal(value) for value in kind]
                texts = ", ".join(literal[8:-1] for literal in literals) if language == "python" else " | ".join(literals)
                found.append(f"Literal[{texts}]" if language == "python" else texts)
            elif kind == "array":
                found.append(self.list_type(language))
            elif kind == "string" and self.is_path:
                # The type of a list of paths has one path as well.
                found += [] if self.is_list else ["Path"]
            else:
                found.append(LANGUAGES[language].scalars[kind])
        return " | ".join(distinct(found))

    def list_type(self, language):
        if self.is_path:
            return "Places" if language == "python" else "Path | Path[]"
        return "str | Iterable[str]" if language == "python" else "string[]"

    def json_type(self):
        """Return the type as the reference shows it."""
        found = []
        for kind in self.types:
            if isinstance(kind, list):
                found += [f"`{json.dumps(value)}`" for value in kind]
            elif kind == "array":
                found.append("list of " + ("paths" if self.is_path else "strings"))
            elif kind == "string" and self.is_path:
                found.append("path")
            else:
                found.append(kind)
        return ", ".join(found)


class Operation:
    """An operation with its options: those that are required in their order, then its other ones, then those of the place."""

    def __init__(self, schema, name):
        given = schema["operations"][name]
        self.name, self.description, self.returns = name, given["description"], given["returns"]
        self.records = [self.record_of(record) for record in given["records"]]
        required = given["options"].get("required", [])
        own = {key: value for key, value in given["options"].get("properties", {}).items() if key != "function"}
        place = schema["$defs"]["StoreOptions"]["properties"]
        values = own | {key: place[key] for key in given["place"]}
        order = [key for key in required if key != "function"]
        order += [key for key in values if key not in order]
        self.options = {key: Option(schema, key, values[key], key in required) for key in order}
        self.first, first_value = FIRST_OPTION.get(name, (None, None))
        if self.first:
            self.options[self.first].default = first_value

    @staticmethod
    def record_of(record):
        return name_of(record["$ref"]) if "$ref" in record else record["type"]

    @property
    def required(self):
        return [option for option in self.options.values() if option.is_required]

    @property
    def optional(self):
        return [option for option in self.options.values() if not option.is_required]

    def function(self, language):
        name = FUNCTION_NAMES[language].get(self.name, self.name)
        return snake(name) if language == "python" else name

    def record_types(self, language):
        scalars = PYTHON_SCALARS if language == "python" else NODE_SCALARS
        return " | ".join(scalars.get(record, record) for record in self.records)


def localized(text, operation, schema, language):
    """Return a description with the names that a language uses."""

    def word(match):
        name = match[1]
        if name in operation.options:
            name = operation.options[name].new_name(language)
        elif name in schema["operations"]:
            name = Operation(schema, name).function(language)
        elif language == "python":
            name = {"true": "True", "false": "False", "null": "None"}.get(name, name)
        return f"``{name}``" if language == "python" else f"`{name}`"

    return re.sub(r"`([^`]+)`", word, prose(text))


def wrapped(text, first, others):
    """Return a text in lines of at most 120 characters."""
    return "\n".join(
        textwrap.wrap(text, 120, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False)
    )


def generated(schema):
    """Return the operations whose functions are written by this tool."""
    return [Operation(schema, name) for name in schema["operations"] if name not in SDK]


# Python.


def python_functions(schema):
    operations = generated(schema)
    records = sorted({record for operation in operations for record in operation.records} - PYTHON_SCALARS.keys())
    names = "".join(f'    "{operation.function("python")}",\n' for operation in operations)
    parts = [
        PYTHON_FUNCTIONS_HEAD
        + "\nfrom __future__ import annotations\n\n"
        + "import os\nfrom collections.abc import Iterable\nfrom typing import Literal\n\n"
        + "from ._records import Records, call, every, read_json\nfrom ._records import several as _several\n"
        + "from ._sdk import Places, Policy, Provider\nfrom .records import (\n"
        + "".join(f"    {record},\n" for record in records)
        + ")\n\n"
        + f"__all__ = [\n{names}]\n\n"
        + "Path = str | os.PathLike[str]\n"
    ]
    parts += [python_function(operation, schema) for operation in operations]
    return "\n\n".join(parts)


def python_function(operation, schema):
    arguments, keywords = [], []
    for option in operation.required:
        arguments.append(f"{option.new_name('python')}: {option.type('python')}")
    for option in operation.optional:
        name, kind = option.new_name("python"), option.type("python")
        if option.name == "in" and operation.name in SPREAD:
            arguments.append(f"*{name}: Path")
            continue
        default = "()" if option.is_list and option.default is not None else python_value(option.default)
        text = f"{name}: {kind} | None = None" if option.default is None else f"{name}: {kind} = {default}"
        (arguments if option.name in ("in", operation.first) else keywords).append(text)
    is_spread = any(argument.startswith("*") for argument in arguments)
    if keywords and not is_spread:
        arguments.append("*")
    result = operation.record_types("python")
    result = {"none": "None", "one": result, "list": f"list[{result}]", "stream": f"Records[{result}]"}[operation.returns]
    text = f"def {operation.function('python')}(\n"
    text += "".join(f"    {argument},\n" for argument in [*arguments, *keywords])
    text += f") -> {result}:\n"
    text += python_docstring(operation, schema)
    values = {option.name: option.new_name("python") for option in operation.options.values()}
    values = {name: f"_several({value})" if operation.options[name].is_list else value for name, value in values.items()}
    text += "    options = {\n" + "".join(f'        "{name}": {value},\n' for name, value in values.items()) + "    }\n"
    call = f'call("{operation.name}", options)'
    return text + {
        "none": f"    every({call})\n",
        "one": f"    return every({call})[0]\n",
        "list": f"    return every({call})\n",
        "stream": f'    return Records("{operation.name}", options, read_json)\n',
    }[operation.returns]


def python_docstring(operation, schema):
    text = wrapped(localized(operation.description, operation, schema, "python"), '    """', "    ") + "\n\n"
    for option in operation.options.values():
        description = localized(option.description, operation, schema, "python")
        text += wrapped(f"``{option.new_name('python')}``: {description}", "    - ", "      ") + "\n"
    return text + '    """\n'


# Node.


def node_functions(schema):
    """Return the functions, their names for modules of ES, and their types."""
    operations = generated(schema)
    names = [operation.function("node") for operation in operations]
    listed = "".join(f"  {name},\n" for name in names)
    code = "'use strict';\n\n" + NODE_FUNCTIONS_HEAD + "\nconst { Records, every } = require('./records.js');\n\n"
    code += "\n".join(node_function(operation) for operation in operations)
    code += f"\nmodule.exports = {{\n{listed}}};\n"
    module = NODE_FUNCTIONS_HEAD + f"\nimport functions from './functions.js';\n\nexport const {{\n{listed}}} = functions;\n"
    return code, module, node_types(schema, operations)


def node_function(operation):
    required = [option.new_name("node") for option in operation.required]
    pairs = [(option.name, option.new_name("node")) for option in operation.required]
    values = [name if name == new_name else f"{name}: {new_name}" for name, new_name in pairs]
    given = ["...options", *values]
    text = ""
    if "from" in operation.options:
        text += "  const { start, ...others } = options ?? {};\n"
        given = ["...others", *values, "from: start"]
    if "in" in operation.options:
        # One place, or several.
        given.append("in: [options?.in ?? []].flat()")
    call = f"('{operation.name}', {{ {', '.join(given)} }})"
    text += {
        "none": f"  await every{call};\n",
        "one": f"  return (await every{call})[0];\n",
        "list": f"  return every{call};\n",
        "stream": f"  return new Records{call};\n",
    }[operation.returns]
    keyword = "function" if operation.returns == "stream" else "async function"
    return f"{keyword} {operation.function('node')}({', '.join([*required, 'options'])}) {{\n{text}}}\n"


def node_types(schema, operations):
    records = sorted({record for operation in operations for record in operation.records} - NODE_SCALARS.keys())
    text = NODE_FUNCTIONS_HEAD + "\nimport type { Path, Policy, Provider, Records } from '../index.js';\n"
    text += "import type {\n" + "".join(f"  {record},\n" for record in records) + "} from '../records.js';\n"
    usage = Operation(schema, "usage")
    base = None
    for name, options in BASES:
        extends = f" extends {base}" if base else ""
        text += f"\n/** {BASE_TEXTS[name]} */\nexport interface {name}{extends} {{\n"
        text += "".join(node_option(usage.options[option], usage, schema) for option in options) + "}\n"
        base = name
    for operation in operations:
        base, inherited = base_of(operation)
        own = [option for option in operation.optional if option.name not in inherited]
        if not own and operation.returns != "stream":
            continue
        extends = f" extends {base}" if base else ""
        text += f"\n/** Options of `{operation.function('node')}`. */\nexport interface {options_type(operation)}{extends} {{\n"
        text += "".join(node_option(option, operation, schema) for option in own)
        if operation.returns == "stream":
            text += "  /** Ends the function when it is aborted. */\n  signal?: AbortSignal;\n"
        text += "}\n"
    for operation in operations:
        text += "\n" + node_declaration(operation, schema)
    return text


def base_of(operation):
    """Return the interface that the options of an operation extend, and the names that it has."""
    found, names = None, []
    for base, options in BASES:
        if not all(option in operation.options for option in options):
            break
        found, names = base, [*names, *options]
    return found, names


def options_type(operation):
    base, inherited = base_of(operation)
    if operation.returns != "stream" and all(option.name in inherited for option in operation.optional):
        return base
    return operation.name[0].upper() + operation.name[1:] + "Options"


def node_option(option, operation, schema):
    text = localized(option.description, operation, schema, "node")
    if option.default not in (None, False, []):
        text += f" Default: `{json.dumps(option.default).strip(chr(34))}`."
    return node_comment(text, "  ") + f"  {option.new_name('node')}?: {option.type('node')};\n"


def node_comment(text, indent):
    line = f"{indent}/** {text} */"
    if len(line) <= 120:
        return line + "\n"
    return f"{indent}/**\n" + wrapped(text, f"{indent} * ", f"{indent} * ") + f"\n{indent} */\n"


def node_declaration(operation, schema):
    text = node_comment(localized(operation.description, operation, schema, "node"), "")
    required = [f"{option.new_name('node')}: {option.type('node')}" for option in operation.required]
    kind = options_type(operation)
    result = operation.record_types("node")
    for option, value, record in OVERLOADS.get(operation.name, [(None, None, result)]):
        results = {"none": "Promise<void>", "one": f"Promise<{record}>", "stream": f"Records<{record}>"}
        result = results.get(operation.returns) or f"Promise<{f'({record})' if ' ' in record else record}[]>"
        options = f"options: {kind} & {{ {option}: {json.dumps(value)} }}" if option else f"options?: {kind}"
        text += f"export function {operation.function('node')}({', '.join([*required, options])}): {result};\n"
    return text


# The reference.


def reference(schema):
    operations = [Operation(schema, name) for name in schema["operations"]]
    parts = [REFERENCE_HEAD]
    listed = "".join(
        f"| [{operation.name}](#{operation.name.lower()}) | {names(operation, 'python')} | {names(operation, 'node')} |\n"
        for operation in operations
    )
    parts.append("| operation | Python | Node |\n| --- | --- | --- |\n" + listed)
    parts += [reference_of(operation, schema) for operation in operations]
    return "\n".join(parts)


def names(operation, language):
    functions = SDK.get(operation.name) or [operation.function("node")]
    if language == "python" and operation.name not in SDK:
        functions = [operation.function("python")]
    return ", ".join(f"`{snake(name) if language == 'python' else name}`" for name in functions)


def reference_of(operation, schema):
    text = f"## {operation.name}\n\n" + wrapped(prose(operation.description), "", "") + "\n"
    if operation.options:
        text += "\n| option | Python | type | default | meaning |\n| --- | --- | --- | --- | --- |\n"
    for option in operation.options.values():
        default = "required" if option.is_required else "" if option.default in (None, []) else f"`{json.dumps(option.default)}`"
        new = option.new_name("node")
        if operation.name in SDK and option.name == "directory":
            new = "dir"
        name_in_node = f", in Node `{new}`" if new != option.name else ""
        cells = [f"`{option.name}`{name_in_node}", f"`{option.new_name('python')}`", option.json_type(), default, prose(option.description)]
        text += "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
    how = {"none": "Has no record.", "one": "Returns one record: ", "list": "Returns a list of records: ", "stream": "Returns records one by one: "}
    text += "\n" + how[operation.returns] + " or ".join(record_text(record, schema) for record in operation.records)
    return text.rstrip() + ("\n" if operation.returns == "none" else ".\n")


def record_text(record, schema):
    definition = schema["$defs"].get(record)
    if definition is None:
        return f"a {record}"
    kinds = [part.get("properties", {}).get("kind", {}).get("const") for part in variants(definition)]
    kinds = [kind for kind in kinds if kind]
    return f"`{record}`" + (f" ({', '.join(f'`{kind}`' for kind in kinds)})" if kinds else "")


# The functions of the SDKs.


def sdk_mistakes(schema):
    """Yield the options that a function of the SDKs has and its operation has not, and the reverse."""
    found = {"python": python_sdk(), "node": node_sdk()}
    for name, functions in SDK.items():
        operation = Operation(schema, name)
        for language, function in ((language, function) for language in found for function in functions):
            has = found[language].get(function)
            if has is None:
                yield f"{language} has no function {function}"
                continue
            wanted = set(operation.options)
            for option in sorted(has ^ wanted):
                if (language, function, option) not in SDK_EXCEPTIONS:
                    lacks = "has no option" if option in wanted else "has an option that the operation lacks:"
                    yield f"{language}: {function} {lacks} {option}"
    for language, function, option in SDK_EXCEPTIONS:
        operation = next(name for name, functions in SDK.items() if function in functions)
        if (option in found[language].get(function, ())) == (option in Operation(schema, operation).options):
            yield f"{language}: {function} needs no exception for {option}"


def camel(name):
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)


def python_sdk():
    """Return for each function of `_sdk.py` the options that it has, by the names of the operations."""
    tree = ast.parse((PYTHON / "_sdk.py").read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return {
        camel(function.name): {camel(argument.arg) for argument in [*function.args.args, *function.args.kwonlyargs]}
        for function in functions
    }


def node_sdk():
    """Return for each function of `index.d.ts` the options that it has, by the names of the operations."""
    text = (NODE / "index.d.ts").read_text(encoding="utf-8") + (NODE / "lib/functions.d.ts").read_text(encoding="utf-8")
    text = re.sub(r"/\*\*.*?\*/", "", text, flags=re.DOTALL)
    found = re.findall(r"export interface (\w+)(?: extends (\w+))? \{(.*?)\n\}", text, re.DOTALL)
    interfaces = {name: (base, body) for name, base, body in found}
    aliases = dict(re.findall(r"export type (\w+) = (\w+);", text))

    def options(name):
        base, body = interfaces[aliases.get(name, name)]
        own = set(re.findall(r"^  (\w+)\??:", body, re.MULTILINE))
        return own | (options(base) if base else set())

    found, sdk = {}, {function for functions in SDK.values() for function in functions}
    for name, arguments in re.findall(r"export function (\w+)\((.*?)\): ", text, re.DOTALL):
        if name not in sdk:
            continue
        pairs = re.findall(r"(\w+)\??: (\w+)", arguments)
        has = set().union(*(options(kind) if argument == "options" else {argument} for argument, kind in pairs))
        found[name] = {"directory" if option == "dir" else option for option in has - {"signal"}}
    return found


def type_mistakes(schema):
    """Yield the types that the packages name and whose values are not those of the option."""
    texts = {"python": (PYTHON / "_sdk.py").read_text(encoding="utf-8"), "node": (NODE / "index.d.ts").read_text(encoding="utf-8")}
    for option, name in NAMED_TYPES.items():
        (wanted,) = Operation(schema, "request").options[option].types
        for language, text in texts.items():
            found = re.search(rf"^(?:export type )?{name} = (.*)$", text, re.MULTILINE)
            if not found or re.findall(r"[\"'](\w+)[\"']", found[1]) != wanted:
                yield f"{language}: the values of {name} are not {', '.join(wanted)}"


def syntax_mistakes():
    """Return what cannot be parsed: names of options may be keywords of a language."""
    mistakes = []
    for name in ("records.py", "_functions.py"):
        try:
            compile((PYTHON / name).read_text(encoding="utf-8"), name, "exec")
        except SyntaxError as error:
            mistakes.append(str(error))
    if node_program := shutil.which("node"):
        for name in ("functions.js", "functions.mjs"):
            ran = subprocess.run([node_program, "--check", NODE / "lib" / name], capture_output=True, text=True, check=False)
            # Node alone takes keywords of strict mode as names in some modules, which bundlers refuse.
            if ran.returncode:
                mistakes.append(ran.stderr.strip())
    return mistakes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is not up to date")
    given = parser.parse_args()
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    code, module, types = node_functions(schema)
    files = {
        PYTHON / "records.py": python(schema),
        PYTHON / "_functions.py": python_functions(schema),
        NODE / "records.d.ts": node(schema),
        NODE / "lib/functions.js": code,
        NODE / "lib/functions.mjs": module,
        NODE / "lib/functions.d.ts": types,
        REFERENCE: reference(schema),
    }
    stale = []
    for path, text in files.items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path)
        if not given.check:
            path.write_text(text, encoding="utf-8")
    mistakes = [*sdk_mistakes(schema), *type_mistakes(schema)]
    if stale and given.check:
        names = ", ".join(str(path.relative_to(ROOT)) for path in stale)
        mistakes.append(f"not up to date: {names}; python3 tools/bindings_api.py writes them")
    mistakes += syntax_mistakes()
    if mistakes:
        sys.exit("\n".join(mistakes))


if __name__ == "__main__":
    main()
