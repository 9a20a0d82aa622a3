#!/usr/bin/env python3
"""Makes the price table of `transcript usage` from the price file of the LiteLLM package.

    tools/prices.py SOURCE.json --version V --date YYYY-MM-DD [--check]
    tools/prices.py --package [--check]

SOURCE.json is `model_prices_and_context_window_backup.json` of that package, and V and the date say which; --package takes the
installed package instead, and dates it today. --check writes nothing and fails when the table is not what the source gives. Needs nothing
but Python. The same source gives the same table.

A row of the table is a model, a tab, and words: `max=` the longest prompt in tokens, then prices in USD for a million tokens. `in`, `out`,
`w5`, `w1` and `r` are input, output, cache writes for five minutes and for an hour, and cache reads; `in@100001` is the price of a request
whose whole prompt has at least 100,001 tokens, `in:batches` that of a service tier; `search` is the price of 1,000 web searches, and
`x:us` a multiplier. Rows are sorted by the bytes of their names. Nothing is filled in: a price that the source does not have is not there."""
import argparse, datetime, decimal, hashlib, importlib.metadata, importlib.util, json, pathlib, re, sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "crates/transcript-catalog/data/prices.tsv"
FILE = "model_prices_and_context_window_backup.json"

KINDS = {
    "input_cost_per_token": "in",
    "output_cost_per_token": "out",
    "cache_creation_input_token_cost": "w5",
    "cache_creation_input_token_cost_above_1hr": "w1",
    "cache_read_input_token_cost": "r",
}
KEY = re.compile(r"(%s)(?:_above_(\d+)(k?)_tokens)?(?:_(batches|flex|priority))?" % "|".join(sorted(KINDS, key=len, reverse=True)))
# Those that make models, whose names a transcript has; the others sell the same models under names of their own.
MAKERS = ("anthropic", "openai", "moonshot", "deepseek", "minimax", "zai", "xai", "gemini", "dashscope")
# Clouds through which clients use Claude.
CLOUDS = ("bedrock", "bedrock_converse", "vertex_ai-anthropic_models", "azure_ai")
INCLUSIVE = ("xai",)  # makers whose band begins at its limit, not after it
MILLION = 1_000_000


def plain(number):
    """A decimal without exponent and without zeros at its end."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def price(number):
    """USD for a token, as USD for a million; a quadrillionth of a dollar for a token is the finest."""
    return plain((number * MILLION).quantize(decimal.Decimal("1e-9"), decimal.ROUND_HALF_UP))


def wanted(name, model):
    maker = model.get("litellm_provider")
    if model.get("mode") not in ("chat", "responses") or "commitment" in name or "off_peak_pricing" in model:
        return False
    return maker in MAKERS or maker in CLOUDS and "claude" in name


def row(model):
    first = 0 if model["litellm_provider"] in INCLUSIVE else 1
    words = {}
    for key, value in model.items():
        match = KEY.fullmatch(key)
        if match and value is not None:
            kind, limit, thousands, tier = match.groups()
            band = f"@{int(limit) * (1000 if thousands else 1) + first}" if limit else ""
            words[KINDS[kind] + band + (f":{tier}" if tier else "")] = price(value)
    # Prices by ranges of the prompt, the end of a range being in it: the same bands in another form.
    for part in model.get("tiered_pricing") or []:
        low = int(part["range"][0])
        band = f"@{low + 1}" if low else ""
        for key, kind in KINDS.items():
            if key in part:
                words[kind + band] = price(part[key])
    search = (model.get("search_context_cost_per_query") or {}).get("search_context_size_medium")
    if search is not None:
        words["search"] = plain(search * 1000)
    for name, factor in (model.get("provider_specific_entry") or {}).items():
        if isinstance(factor, (int, decimal.Decimal)):
            words[f"x:{name}"] = plain(decimal.Decimal(factor))
    if not words:
        return None
    limit = model.get("max_input_tokens")
    longest = [] if limit is None else [f"max={int(limit)}"]
    return " ".join(longest + [f"{key}={words[key]}" for key in sorted(words)])


def table(source, version, date):
    models = json.loads(source, parse_float=decimal.Decimal, parse_int=decimal.Decimal)
    rows = {name: row(model) for name, model in models.items() if wanted(name, model)}
    body = "".join(f"{name}\t{rows[name]}\n" for name in sorted(rows, key=str.encode) if rows[name])
    return (
        f"# date {date}\n"
        f"# source the price file of the LiteLLM package, version {version}, sha256 {hashlib.sha256(source).hexdigest()}\n"
        f"# rows sha256 {hashlib.sha256(body.encode()).hexdigest()}, made by tools/prices.py\n"
    ) + body


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", nargs="?", type=pathlib.Path)
    parser.add_argument("--package", action="store_true")
    parser.add_argument("--version")
    parser.add_argument("--date")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    old = TABLE.read_text() if TABLE.exists() else ""
    if given.package:
        given.source = pathlib.Path(importlib.util.find_spec("litellm").origin).with_name(FILE)
        given.version = importlib.metadata.version("litellm")
    if not given.source:
        parser.error("a source, or --package")
    # The same source keeps the version and the date that it had.
    header = re.search(r"# date (\S+)\n# source .*, version (\S+), sha256 (\S+)\n", old)
    source = given.source.read_bytes()
    same = header and header[3] == hashlib.sha256(source).hexdigest()
    version = given.version or (header[2] if same else None)
    date = given.date or (header[1] if same else datetime.date.today().isoformat() if given.package else None)
    if not version or not date:
        parser.error("--version and --date of this source")
    new = table(source, version, date)
    if given.check:
        if new != old:
            sys.exit(f"{TABLE.relative_to(ROOT)} is not what {given.source.name} gives: run tools/prices.py without --check")
        return
    TABLE.write_text(new)
    print(f"{TABLE.relative_to(ROOT)}: {new.count(chr(10)) - 3} models, {len(new)} bytes")


main()
