#!/usr/bin/env python3
"""Makes the price table of `transcript usage` from the price file of the LiteLLM package.

    pip download --no-deps litellm && tools/prices.py litellm-*.whl
    tools/prices.py --package
    tools/prices.py --check SOURCE…

A source is a wheel of that package, or VERSION=FILE with its `model_prices_and_context_window_backup.json`; --package takes the package that
is installed. Models that a source no longer has keep the row that the table has for them, since old sessions used them; the first of several
sources is the oldest. --check writes nothing and fails when the table is not what the sources give; with --fresh, without the table that
there is. Needs nothing but Python. The same sources and the same table give the same table; the date is the day when its newest source was
new to it.

A row of the table is a model, a tab, and words: `max=` the longest prompt in tokens, then prices in USD for a million tokens. `in`, `out`,
`w5`, `w1` and `r` are input, output, cache writes for five minutes and for an hour, and cache reads; `in@100001` is the price of a request
whose whole prompt has at least 100,001 tokens, `in:batches` that of a service tier; `search` is the price of 1,000 web searches, `x:us` a
multiplier, and `was` the last source that had the model. Rows are sorted by the bytes of their names. Nothing is filled in, but for the
corrections below: a price that no source has is not there."""
import argparse, datetime, decimal, hashlib, importlib.metadata, importlib.util, json, pathlib, re, sys, zipfile

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
# Bought by the month, or paid by tokens of sound and pictures, which no transcript counts.
OTHER = re.compile("commitment|audio|realtime|-tts|image|-live")
INCLUSIVE = ("xai",)  # makers whose band begins at its limit, not after it
MILLION = 1_000_000
# What the price page of the maker says, where no source says it, or one is wrong.
CORRECTIONS = {
    # A web search costs the same with every model.
    "claude-haiku-4-5": {"search": "10"},
    "claude-haiku-4-5-20251001": {"search": "10"},
    # An hour in the cache costs twice the input. Version 1.80.0 had 6 USD for all models of that time.
    "claude-3-5-haiku-20241022": {"w1": "1.6"},
    "claude-3-5-haiku-latest": {"w1": "2"},
    "claude-3-opus-latest": {"w1": "30"},
}


def plain(number):
    """A decimal without exponent and without zeros at its end."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def price(number):
    """USD for a token, as USD for a million; a quadrillionth of a dollar for a token is the finest."""
    return plain((number * MILLION).quantize(decimal.Decimal("1e-9"), decimal.ROUND_HALF_UP))


def wanted(name, model):
    maker = model.get("litellm_provider")
    if model.get("mode") not in ("chat", "responses") or OTHER.search(name) or "off_peak_pricing" in model:
        return False
    return maker in MAKERS or maker in CLOUDS and "claude" in name


def row(name, model):
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
    for place, factor in (model.get("provider_specific_entry") or {}).items():
        if isinstance(factor, decimal.Decimal):
            words[f"x:{place}"] = plain(factor)
    words.update(CORRECTIONS.get(name, {}))
    if not words:
        return None
    limit = model.get("max_input_tokens")
    longest = [] if limit is None else [f"max={int(limit)}"]
    return " ".join(longest + [f"{key}={words[key]}" for key in sorted(words)])


def rows_of(table):
    """name: words of each row"""
    return dict(line.split("\t") for line in table.splitlines() if "\t" in line)


def update(rows, version, models):
    """the rows of a source over those of an older version"""
    kept = {name: words for name, words in rows.items() if name not in models}
    merged = {name: words if " was=" in words else f"{words} was={version}" for name, words in kept.items()}
    for name, words in ((name, row(name, model)) for name, model in models.items() if wanted(name, model)):
        if not words:
            continue
        # A speed that is no longer sold was sold at a price: its absence does not make it free.
        fast = re.search(r" x:fast=\S+", rows.get(name, ""))
        merged[name] = words + (fast[0] if fast and " x:fast=" not in words else "")
    return merged


def source(argument):
    """(version, bytes) of an argument"""
    version, equals, path = argument.rpartition("=")
    if equals:
        return version, pathlib.Path(path).read_bytes()
    with zipfile.ZipFile(path) as wheel:
        return pathlib.Path(path).name.split("-")[1], wheel.read(f"litellm/{FILE}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="*")
    parser.add_argument("--package", action="store_true")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    if given.package:
        package = pathlib.Path(importlib.util.find_spec("litellm").origin)
        given.sources.append(f"{importlib.metadata.version('litellm')}={package.with_name(FILE)}")
    if not given.sources:
        parser.error("a source, or --package")
    old = TABLE.read_text() if TABLE.exists() and not given.fresh else ""
    digests = dict(re.findall(r"^# source .* version (\S+), sha256 (\S+)$", old, re.M))
    rows, version = rows_of(old), next(reversed(digests), None)
    date = re.search(r"^# date (\S+)$", old, re.M)
    newest = version and digests[version]
    for argument in given.sources:
        newer, content = source(argument)
        rows = update(rows, version, json.loads(content, parse_float=decimal.Decimal, parse_int=decimal.Decimal))
        version, digests[newer] = newer, hashlib.sha256(content).hexdigest()
    # Of the others, those that rows are from.
    digests = {each: digest for each, digest in digests.items() if each == version or any(f" was={each}" in row for row in rows.values())}
    body = "".join(f"{name}\t{rows[name]}\n" for name in sorted(rows, key=str.encode))
    head = [f"date {date[1] if date and digests[version] == newest else datetime.date.today().isoformat()}"]
    head += [f"source the price file of the LiteLLM package, version {each}, sha256 {digest}" for each, digest in digests.items()]
    head += [f"rows sha256 {hashlib.sha256(body.encode()).hexdigest()}, made by tools/prices.py"]
    new = "".join(f"# {line}\n" for line in head) + body
    if given.check:
        if new.split("\n", 1)[given.fresh:] != TABLE.read_text().split("\n", 1)[given.fresh:]:
            sys.exit(f"{TABLE.relative_to(ROOT)} is not what {', '.join(given.sources)} gives: run tools/prices.py without --check")
        return
    TABLE.write_text(new)
    print(f"{TABLE.relative_to(ROOT)}: {len(rows)} models, {len(new.encode())} bytes")


main()
