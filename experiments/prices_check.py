#!/usr/bin/env python3
"""Compares our costs of random calls with those of LiteLLM: all models of Anthropic, or with --all every model of the table.

    python3 experiments/prices_check.py [--calls N] [--seed S] [--all] [--bin PROGRAM] [--sample FILE]

Needs the package `litellm`, of the version that the table was made from; uses no network. PROGRAM is the example `prices` of the crate
transcript-catalog, target/release/examples/prices if not given. --sample writes some of the calls with LiteLLM's answers, for the tests.

LiteLLM computes in binary floats, we in integers: costs are equal if they differ by half a billionth of a dollar, which is our rounding, and
1e-14 of the cost, which is more than its floats can lose. A difference has to have one of the causes below, and then the value that the cause
gives; any other fails."""
import argparse, collections, decimal, json, os, pathlib, random, subprocess, sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
ROOT = pathlib.Path(__file__).resolve().parent.parent
NANO = 10**9
TIERS = (8, 8, 4, 1, 1)
D = decimal.Decimal
SUFFIX = {"batch": "_batches", "flex": "_flex", "priority": "_priority"}
KEYS = (
    "input_cost_per_token", "output_cost_per_token", "cache_creation_input_token_cost",
    "cache_creation_input_token_cost_above_1hr", "cache_read_input_token_cost",
)


# Making calls.

def bands(row):
    limits = {int(part.split("k_tokens")[0]) * 1000 for key in row for part in key.split("_above_")[1:] if "k_tokens" in part}
    return sorted(limits | {int(part["range"][0]) for part in row.get("tiered_pricing") or ()} - {0}) or [200_000]


def count(rng):
    return rng.choice((0, 0, 1, rng.randrange(10), rng.randrange(1000), rng.randrange(60_000), rng.randrange(400_000)))


def call(rng, name, row):
    tokens = [count(rng) * (at != 3 or rng.random() < 0.6) for at in range(5)]
    if rng.random() < 0.4:
        # A prompt that ends at a band, or next to it.
        total = rng.choice(bands(row)) + rng.choice((-1, 0, 1, 2))
        parts = sorted(rng.randrange(total + 1) if rng.random() < 0.7 else rng.choice((0, total)) for _ in range(3))
        tokens = [parts[0], tokens[1], parts[1] - parts[0], parts[2] - parts[1], total - parts[2]]
    if row.get("tiered_pricing") and not any(tokens[2:] + tokens[:1]):
        tokens[0] = 1  # LiteLLM finds no range for an empty prompt
    searches = rng.choice((0,) * 8 + (1, rng.randrange(40)))
    return {
        "model": name,
        "tokens": tokens + [searches],
        "service_tier": rng.choices((None, "standard", "batch", "flex", "priority"), TIERS)[0],
        "inference_geo": rng.choice((None, "", "global", "not_available", "us", "us", "US", "eu")),
        "speed": rng.choice((None, None, None, "standard", "standard", "fast")),
    }


# LiteLLM.

def usage_of(call):
    from litellm.llms.anthropic.chat.transformation import AnthropicConfig
    input_, output, w5, w1, read, searches = call["tokens"]
    return AnthropicConfig().calculate_usage(
        {
            "input_tokens": input_,
            "output_tokens": output,
            "cache_creation_input_tokens": w5 + w1,
            "cache_creation": {"ephemeral_5m_input_tokens": w5, "ephemeral_1h_input_tokens": w1},
            "cache_read_input_tokens": read,
            "server_tool_use": {"web_search_requests": searches},
            "service_tier": call["service_tier"],
            "inference_geo": call["inference_geo"],
            "speed": call["speed"],
        },
        reasoning_content=None,
    )


def theirs(call, row):
    """LiteLLM's cost in USD: all, and of it web searches"""
    import litellm
    from litellm.llms.anthropic.cost_calculation import get_cost_for_anthropic_web_search
    from litellm.cost_calculator import batch_cost_calculator
    from litellm.litellm_core_utils.llm_cost_calc.utils import generic_cost_per_token
    usage, provider = usage_of(call), row["litellm_provider"]
    search = get_cost_for_anthropic_web_search(litellm.get_model_info(call["model"], provider), usage) if call["tokens"][5] else 0
    if call["service_tier"] == "batch":
        # completion_cost takes a call of a batch for an ordinary one; LiteLLM prices batches here.
        return sum(batch_cost_calculator(usage, call["model"], provider)) + search, search
    if provider == "anthropic":
        answer = litellm.ModelResponse(model=call["model"], usage=usage)
        return litellm.completion_cost(answer, model=call["model"], custom_llm_provider=provider), search
    # Other providers: its prices of tokens, without the additions that each of them has in code of its own.
    return sum(generic_cost_per_token(call["model"], usage, provider, service_tier=call["service_tier"])), 0


# Causes of differences: (name, what is right), by the source of the table. A cause gives our value, from theirs.

def price_missing(row, tokens, suffix, inclusive):
    """whether a kind of token that the call has is priced, but not on the terms of this tier"""
    prompt = sum(tokens) - tokens[1]
    for key, n in zip(KEYS, (tokens[0], tokens[1], tokens[2], tokens[3], tokens[4])):
        if n == 0:
            continue
        # A price that is absent is another one, as LiteLLM reads its file.
        for absent, other in ((KEYS[3], KEYS[2]), (KEYS[2], KEYS[0]), (KEYS[4], KEYS[0])):
            key = other if key == absent and row.get(key) is None else key
        def highest(end):
            passed = [0] * (row.get(key + end) is not None)
            for name in row:
                if row[name] is not None and name.startswith(key + "_above_") and name.endswith("k_tokens" + end):
                    limit = name[len(key) + 7:-len("k_tokens" + end)]
                    if limit.isdigit() and prompt >= int(limit) * 1000 + (not inclusive):
                        passed.append(int(limit))
            return max(passed, default=None)
        standard, own = highest(""), highest(suffix)
        if standard is not None and (own is None or own < standard):
            return True
    return False


def search_price(row):
    return (row.get("search_context_cost_per_query") or {}).get("search_context_size_medium")


def cause(call, row, ours):
    """(the cause of a difference, the multiplier of their price of tokens that gives ours, or None where ours is unknown); `ours` is the row of
    the table as it is written"""
    kept_fast = ours.get("x:fast")
    tokens, tier, provider = call["tokens"], call["service_tier"], row["litellm_provider"]
    factors = row.get("provider_specific_entry") or {}
    geo = (call["inference_geo"] or "").lower()
    geo = "" if geo in ("global", "not_available") or not set(factors) - {"fast"} else geo
    fast = call["speed"] == "fast"
    if tier in SUFFIX and any(tokens[:5]):
        if row.get("input_cost_per_token" + SUFFIX[tier]) is None:
            return f"service tier {tier}, which the row does not price", None
        if price_missing(row, tokens, SUFFIX[tier], provider == "xai"):
            hour = tier == "batch" and tokens[3] and provider == "anthropic"
            return ("cache writes for an hour in a batch" if hour else f"service tier {tier}, without a price of a kind or band"), None
    if tokens[5] and "search" not in ours:
        return "web search, which the row does not price", None
    if not any(tokens[:5]):
        searches = tokens[5] and not search_price(row)
        return ("web search, whose price only the price page has", D(1)) if searches else None
    if fast and "fast" not in factors and not kept_fast:
        return "speed fast, for which there is no multiplier", None
    if geo and geo not in factors:
        return "a geo without a multiplier, where another has one", None
    factor = (D(str(factors.get("fast", kept_fast))) if fast else 1) * (D(str(factors[geo])) if geo else 1)
    if tier == "batch" and factor != 1:
        return "geo or speed of a batch, which LiteLLM leaves out", factor
    if fast and "fast" not in factors:
        return "speed fast, whose multiplier only an earlier source has", D(kept_fast)
    if tokens[5] and not search_price(row):
        return "web search, whose price only the price page has", D(1)
    return None


# The comparison.

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--bin", default=ROOT / "target/release/examples/prices")
    parser.add_argument("--sample", type=pathlib.Path)
    given = parser.parse_args()
    import litellm
    litellm.suppress_debug_info = True
    lines = (ROOT / "crates/transcript-catalog/data/prices.tsv").read_text().splitlines()
    names = dict(line.split("\t") for line in lines if "\t" in line)
    rows = {name: litellm.model_cost[name] for name in names if name in litellm.model_cost}
    # LiteLLM takes the row of the name with its provider, where there is one.
    rows = {name: row for name, row in rows.items() if f"{row['litellm_provider']}/{name}" not in rows}
    if not given.all:
        rows = {name: row for name, row in rows.items() if row["litellm_provider"] == "anthropic"}
    rng, order = random.Random(given.seed), sorted(rows)
    calls = [call(rng, name, rows[name]) for name in (order[at % len(order)] for at in range(given.calls))]
    if given.all:
        for each in calls:
            if rows[each["model"]]["litellm_provider"] != "anthropic":
                each["tokens"][5], each["inference_geo"], each["speed"] = 0, None, None
    lines = "".join(json.dumps(each) + "\n" for each in calls)
    answers = subprocess.run([str(given.bin)], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(answers) == len(calls), "an answer for each call"
    table, wrong, sample, most = collections.Counter(), [], collections.defaultdict(list), D(0)
    for each, answer in zip(calls, answers):
        row, words = rows[each["model"]], dict(word.split("=") for word in names[each["model"]].split())
        usd, search = (D(amount) for amount in theirs(each, row))  # exactly the floats
        ours = None if answer == "null" else D(answer)
        name, factor = cause(each, row, words) or ("equal", D(1))
        if not search_price(row):
            search_ours = D(words.get("search", 0)) / 1000 * each["tokens"][5]
        else:
            search_ours = search
        expected = None if factor is None else ((usd - search) * factor + search_ours) * NANO
        if expected is None or ours is None:
            right = expected is ours
        else:
            right = abs(ours - expected) <= D("0.5") + expected * D("1e-14")
            most = max(most, abs(ours - expected) if right else 0)
        table[name] += right
        if not right:
            wrong.append((each, answer, float(usd), name))
        else:
            sample[each["model"], name].append({**each, "usd": None if expected is None else float(expected / NANO), "cause": name})
    for name, n in table.most_common():
        print(f"{n:8} {name}")
    print(f"{len(wrong):8} wrong or without a cause; largest difference of the others {most:.6f} billionths of a dollar")
    for each in wrong[:10]:
        print("   ", *each)
    if given.sample:
        # A few of each model and cause, and more of those with bands.
        few = (group[:30 if name == "equal" and bands(rows[model])[0] != 200_000 else 2] for (model, name), group in sorted(sample.items()))
        given.sample.write_text("".join(json.dumps(each) + "\n" for group in few for each in group))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
