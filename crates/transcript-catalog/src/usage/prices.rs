//! Prices of models, and the cost of a call.
//!
//! Amounts are integers. A price is kept in quadrillionths of a dollar for a token (10⁻¹⁵ USD), since batch
//! prices like 0.0625 USD for a million tokens are not whole billionths; the sum of a call is rounded to
//! billionths once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memchr::memmem;
use serde_json::value::RawValue;
use transcript_storage::NamedInput;

use super::Tokens;

/// Made by `tools/prices.py`, which describes the words of a row. Rows are sorted by the bytes of their names.
static PRICE_TABLE: &str = include_str!("../../data/prices.tsv");

/// The decimal places of a price in USD for a token.
const DECIMAL_PLACES: u32 = 15;
/// The decimal places of a multiplier.
const FACTOR_PLACES: u32 = 3;
/// The factor 1 with this number of decimal places.
const FACTOR_ONE: u64 = 1000;
/// The maximum number of prices of one model. The table has about 50; a price file must not fill the memory with bands.
const MAX_RATES_PER_MODEL: usize = 200;
/// The name of a speed, and of its multiplier; all other multipliers are those of geos.
const FAST_SPEED: &str = "fast";

/// The prefixes of the names of models in the table. They are tried when no row has the name without one.
const MODEL_PREFIXES: [&str; 9] = [
    "vertex_ai/",
    "azure_ai/",
    "moonshot/",
    "deepseek/",
    "minimax/",
    "zai/",
    "xai/",
    "gemini/",
    "dashscope/",
];
/// The same, of makers whose models are in the table without it.
const OPTIONAL_PREFIXES: [&str; 2] = ["anthropic/", "openai/"];

/// What agents and platforms put before the name of a model: the maker in their spelling, or the collection of an API.
const SPELLED_PREFIXES: [&str; 9] = [
    "anthropic/",
    "openai/",
    "google/",
    "models/",
    "x-ai/",
    "moonshotai/",
    "z-ai/",
    "qwen/",
    "github-copilot/",
];

/// The terms of a call: fields of its usage, as they are in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms<'a> {
    /// The field `service_tier`.
    pub service_tier: Option<&'a str>,
    /// The field `inference_geo`.
    pub inference_geo: Option<&'a str>,
    /// The field `speed`.
    pub speed: Option<&'a str>,
}

/// Prices of models: the embedded table, or that and a file.
#[derive(Clone, Debug)]
pub struct Prices {
    /// The entries of the file, which replace rows of the embedded table.
    read: BTreeMap<String, ModelPrices>,
    date: String,
    digest: String,
}

impl Prices {
    /// Returns the prices that are part of the program. Nothing is parsed before a model is asked for.
    #[must_use]
    pub fn embedded() -> Self {
        Self {
            read: BTreeMap::new(),
            date: header("# date ").to_owned(),
            digest: header("# rows sha256 ").to_owned(),
        }
    }

    /// Reads a price file and adds the embedded prices of the models that it does not have.
    ///
    /// The file is an object with an entry for each model, in the format of the price file of the LiteLLM
    /// package: that file, or a short one with the same keys. Entries of a `mode` other than `chat` and
    /// `responses` are omitted, and so are keys that no call of a conversation is paid by. A string with the
    /// key `date` is the [date](Self::date).
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not JSON, or a price in it is not a number of USD: the error says where.
    pub fn read(path: &Path) -> Result<Self, PricesError> {
        let error = |cause| PricesError {
            path: path.to_owned(),
            cause,
        };
        let bytes = NamedInput::read_all(path).map_err(|e| error(Cause::Read(e)))?;
        let entries: BTreeMap<String, &RawValue> =
            serde_json::from_slice(&bytes).map_err(|e| error(Cause::Json(e)))?;
        let mut prices = Self::embedded();
        for (name, entry) in entries {
            if name == "date" {
                let date = serde_json::from_str(entry.get());
                prices.date = date.map_err(|_| error(Cause::key(&name, None, "not a string")))?;
            } else if name != "sample_spec" {
                let entry =
                    from_json(entry).map_err(|(key, what)| error(Cause::key(&name, key, what)))?;
                prices.read.extend(entry.map(|entry| (name, entry)));
            }
        }
        let mut digest = hmac_sha256::Hash::new();
        digest.update(&prices.digest);
        digest.update(&bytes);
        let digest = digest.finalize();
        prices.digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(prices)
    }

    /// Returns the day of the prices, as `2026-11-20`: of the file, if it says one, else of the embedded table.
    #[must_use]
    pub fn date(&self) -> &str {
        &self.date
    }

    /// Returns the SHA-256 of the prices: of the rows of the embedded table, or if a file was read, of the
    /// text of that digest and the bytes of the file after it.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the prices of the model that a line or a client names, or nothing where they are not known. Ask
    /// once for each name: a row is parsed each time.
    ///
    /// The row with exactly this name counts; then that without `[1m]` at its end, which says how long a prompt
    /// may be; then that with the name of a maker or a platform before it or not, if all such rows have the same prices.
    /// Of the address of a resource of Bedrock or Vertex, the name at its end counts, in its region if that has a row.
    ///
    /// Last, the spellings of agents: a maker before the name (`google/gemini-2.5-pro`, `models/gemini-2.5-pro`), a point in the version
    /// of a model whose row has a hyphen (`claude-sonnet-4.5`), and no date where all rows that add one have the same prices
    /// (`claude-sonnet-4`). Names that are merely alike are other models.
    #[must_use]
    pub fn model(&self, name: &str) -> Option<ModelPrices> {
        let short = name.strip_suffix("[1m]").unwrap_or(name);
        let of_resource = || {
            let Resource { region, model } = Resource::parse(short)?;
            let in_region =
                region.and_then(|region| self.row(&format!("bedrock/{region}/{model}")));
            in_region.or_else(|| self.named(model))
        };
        self.row(name)
            .or_else(|| self.named(short))
            .or_else(of_resource)
            .or_else(|| self.spelled(short))
    }

    fn spelled(&self, name: &str) -> Option<ModelPrices> {
        let mut prefixes = SPELLED_PREFIXES.iter();
        let bare = prefixes.find_map(|prefix| name.strip_prefix(prefix));
        // A second maker after the first one is a part of another name.
        let bare = bare.filter(|bare| !bare.contains('/'));
        let bare = bare.unwrap_or(name);
        let hyphens = with_hyphens(bare);
        [bare, &hyphens]
            .into_iter()
            .find_map(|name| self.named(name).or_else(|| self.dated(name)))
    }

    /// Returns the prices of the rows that have a name and a date after it, if all cost the same.
    fn dated(&self, name: &str) -> Option<ModelPrices> {
        let is_dated = |row: &&str| {
            let rest = row.strip_prefix(name);
            rest.and_then(|rest| rest.strip_prefix('-'))
                .is_some_and(is_date)
        };
        let of_table = PRICE_TABLE
            .lines()
            .filter_map(|line| line.split('\t').next());
        let of_file = self.read.keys().map(|name| &**name);
        let mut rows = of_file.chain(of_table).filter(is_dated);
        let first = self.row(rows.next()?)?;
        let mut rows = rows.filter_map(|name| self.row(name));
        rows.all(|row| row.costs_like(&first)).then_some(first)
    }

    fn named(&self, name: &str) -> Option<ModelPrices> {
        self.row(name).or_else(|| {
            let bare = OPTIONAL_PREFIXES
                .iter()
                .filter_map(|maker| self.row(name.strip_prefix(maker)?));
            let mut rows = bare.chain(
                MODEL_PREFIXES
                    .iter()
                    .filter_map(|maker| self.row(&format!("{maker}{name}"))),
            );
            let first = rows.next()?;
            // The same name on several platforms can have different prices. Then nothing says which one was paid.
            rows.all(|row| row.costs_like(&first)).then_some(first)
        })
    }

    fn row(&self, name: &str) -> Option<ModelPrices> {
        self.read
            .get(name)
            .cloned()
            .or_else(|| embedded(name).map(from_row))
    }
}

/// Writes the points between digits as hyphens.
fn with_hyphens(name: &str) -> String {
    let bytes = name.as_bytes();
    let is_digit = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(u8::is_ascii_digit)
    };
    let spelled = name.char_indices().map(|(at, letter)| {
        let is_between = is_digit(at.checked_sub(1)) && is_digit(at.checked_add(1));
        if letter == '.' && is_between {
            '-'
        } else {
            letter
        }
    });
    spelled.collect()
}

/// Returns whether a text is a date as makers add it: `20250929` or `2025-08-07`.
fn is_date(text: &str) -> bool {
    let lens = text.split('-').map(str::len);
    let is_form = lens.clone().eq([8]) || lens.eq([4, 2, 2]);
    is_form
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// The prices of one model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelPrices {
    /// By size of prompt, the smallest first.
    bands: Vec<Band>,
    /// For one web search, in 10⁻¹⁵ USD.
    search: Option<u64>,
    /// By the geo of the call, or `fast`; in thousandths.
    factors: Vec<(String, u64)>,
    max_input_tokens: Option<u64>,
}

/// The address of a model on a platform.
struct Resource<'n> {
    /// The region, of one that has prices of its own.
    region: Option<&'n str>,
    /// The model as the platform names it.
    model: &'n str,
}

impl<'n> Resource<'n> {
    /// Parses an address: of Bedrock, `arn:aws:bedrock:REGION:ACCOUNT:KIND/MODEL` or `bedrock/MODEL`; of Vertex,
    /// `projects/…/publishers/anthropic/models/MODEL`. The name that a person chose for a profile is in no row.
    fn parse(name: &'n str) -> Option<Self> {
        if let Some((_, model)) = name.split_once("publishers/anthropic/models/") {
            return Some(Self {
                region: None,
                model,
            });
        }
        if let Some(model) = name.strip_prefix("bedrock/") {
            let (region, model) = match model.split_once('/') {
                Some((region, model)) => (Some(region), model),
                None => (None, model),
            };
            return Some(Self { region, model });
        }
        let mut parts = name.splitn(6, ':');
        let is_bedrock = parts.next() == Some("arn")
            && parts.next().is_some_and(|part| part.starts_with("aws"))
            && parts.next() == Some("bedrock");
        let region = parts.next().filter(|region| !region.is_empty());
        let (_, model) = parts.nth(1)?.split_once('/')?;
        is_bedrock.then_some(Self { region, model })
    }
}

/// The price of all tokens of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Band {
    tier: Tier,
    /// The smallest prompt in tokens that is in this band.
    from: u64,
    /// By kind, where the price is known; in 10⁻¹⁵ USD for a token.
    prices: [Option<u64>; KINDS.len()],
}

/// A price as a table has it.
struct Rate {
    kind: Kind,
    tier: Tier,
    from: u64,
    price: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Input,
    Output,
    Write5m,
    Write1h,
    Read,
}

const KINDS: [Kind; 5] = [
    Kind::Input,
    Kind::Output,
    Kind::Write5m,
    Kind::Write1h,
    Kind::Read,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tier {
    Standard,
    Batch,
    Flex,
    Priority,
}

const TIERS: [Tier; 4] = [Tier::Standard, Tier::Batch, Tier::Flex, Tier::Priority];

impl ModelPrices {
    /// Returns the cost of a call in billionths of a dollar, rounded half up, [`u128::MAX`] at most; or nothing
    /// if it used something whose price on these terms is not known.
    ///
    /// Bands apply to the whole call by the size of its prompt. Multipliers of geo and speed apply to tokens, not
    /// to web searches.
    #[must_use]
    pub fn cost(&self, tokens: &Tokens, terms: &Terms<'_>) -> Option<u128> {
        let counts = [
            tokens.input,
            tokens.output,
            tokens.cache_write_5m,
            tokens.cache_write_1h,
            tokens.cache_read,
        ];
        let mut sum = 0_u128;
        if counts != [0; KINDS.len()] {
            let (tier, prompt) = (tier(terms.service_tier)?, tokens.prompt());
            let band = self
                .bands
                .iter()
                .rev()
                .find(|band| band.tier == tier && band.from <= prompt)?;
            for (count, price) in counts
                .into_iter()
                .zip(band.prices)
                .filter(|(count, _)| *count > 0)
            {
                // One unknown price makes the cost unknown. Without tokens of its kind it does not matter.
                sum = sum.saturating_add(u128::from(count) * u128::from(price?));
            }
        }
        if sum > 0 {
            let factor =
                u128::from(self.geo(terms.inference_geo)?) * u128::from(self.speed(terms.speed)?);
            sum = sum.saturating_mul(factor);
        }
        if tokens.web_search > 0 {
            // After the factors, which do not apply to searches.
            let searches = u128::from(tokens.web_search) * u128::from(self.search?);
            sum = sum.saturating_add(searches.saturating_mul(u128::from(FACTOR_ONE * FACTOR_ONE)));
        }
        // The sum is exact up to here and rounded once, so that the cost does not depend on the order of its parts.
        let unit = 10_u128.pow(DECIMAL_PLACES - 9) * u128::from(FACTOR_ONE * FACTOR_ONE);
        Some(sum / unit + u128::from(sum % unit >= unit / 2))
    }

    /// Returns whether every call costs the same by both.
    fn costs_like(&self, other: &Self) -> bool {
        self.bands == other.bands && self.search == other.search && self.factors == other.factors
    }

    /// Returns the longest prompt that the model accepts in tokens, where that is known.
    #[must_use]
    pub fn max_input_tokens(&self) -> Option<u64> {
        self.max_input_tokens
    }

    /// The multiplier of a geo. Models that have none cost the same wherever they run; where another geo has one, that
    /// of this is not known.
    fn geo(&self, geo: Option<&str>) -> Option<u64> {
        let geo = geo.filter(|geo| {
            !["", "global", "not_available"]
                .iter()
                .any(|plain| geo.eq_ignore_ascii_case(plain))
        });
        let mut geos = self
            .factors
            .iter()
            .filter(|(name, _)| name != FAST_SPEED)
            .peekable();
        match geo {
            Some(geo) if geos.peek().is_some() => {
                Some(geos.find(|(name, _)| geo.eq_ignore_ascii_case(name))?.1)
            }
            _ => Some(FACTOR_ONE),
        }
    }

    /// The multiplier of a speed. A speed that is sold has a price: without a multiplier it is not known.
    fn speed(&self, speed: Option<&str>) -> Option<u64> {
        match speed.unwrap_or_default() {
            "" | "standard" => Some(FACTOR_ONE),
            FAST_SPEED => Some(self.factors.iter().find(|(name, _)| name == FAST_SPEED)?.1),
            _ => None,
        }
    }
}

/// The bands of these prices.
fn bands(mut rates: Vec<Rate>) -> Vec<Band> {
    rates.sort_by_key(|rate| rate.from);
    let mut bands = Vec::new();
    // A band for each threshold, with the prices of all kinds: a call is then priced by one band.
    for from in rates.iter().map(|rate| rate.from).chain([0]) {
        for tier in TIERS
            .into_iter()
            .filter(|tier| rates.iter().any(|rate| rate.tier == *tier))
        {
            let prices = KINDS.map(|kind| price(&rates, kind, tier, from));
            bands.push(Band { tier, from, prices });
        }
    }
    bands.sort_by_key(|band| (band.from, band.tier as u8));
    bands.dedup();
    bands
}

/// The price of a kind of token in a prompt of this size, by rates in the order of their bands. A maker that names no
/// price for the cache bills its tokens as ordinary input, and one that has none for an hour has one price for all writes:
/// this is how LiteLLM reads its file.
fn price(rates: &[Rate], kind: Kind, tier: Tier, prompt: u64) -> Option<u64> {
    let passed = |tier| {
        let mut rates = rates.iter().rev();
        rates.find(|rate| rate.kind == kind && rate.tier == tier && rate.from <= prompt)
    };
    match (passed(tier), passed(Tier::Standard)) {
        // The standard price has a band here, for which the tier has no price.
        (Some(own), Some(standard)) if standard.from > own.from => None,
        (Some(own), _) => Some(own.price),
        // There is a price for this kind, but not in this tier.
        (None, Some(_)) => None,
        (None, None) => match kind {
            Kind::Input | Kind::Output => None,
            Kind::Write1h => price(rates, Kind::Write5m, tier, prompt),
            Kind::Write5m | Kind::Read => price(rates, Kind::Input, tier, prompt),
        },
    }
}

/// The tier of a call by its field, or nothing if the word is not known.
fn tier(name: Option<&str>) -> Option<Tier> {
    match name.unwrap_or_default() {
        "" | "standard" | "default" => Some(Tier::Standard),
        "batch" => Some(Tier::Batch),
        "flex" => Some(Tier::Flex),
        "priority" => Some(Tier::Priority),
        _ => None,
    }
}

/// The tier by the end of a key of the LiteLLM file.
fn tier_of_key(end: &str) -> Option<Tier> {
    match end {
        "" => Some(Tier::Standard),
        "batches" => Some(Tier::Batch),
        "flex" => Some(Tier::Flex),
        "priority" => Some(Tier::Priority),
        _ => None,
    }
}

fn header(start: &str) -> &'static str {
    let line = PRICE_TABLE
        .lines()
        .find_map(|line| line.strip_prefix(start))
        .unwrap_or_default();
    line.split(',').next().unwrap_or_default()
}

/// The words of the row of the embedded table that has this name. To look through all of it takes microseconds.
fn embedded(name: &str) -> Option<&'static str> {
    let row = memmem::find(PRICE_TABLE.as_bytes(), format!("\n{name}\t").as_bytes())?;
    PRICE_TABLE[row + name.len() + 2..].lines().next()
}

/// The prices in the words of a row. A test checks that no word of the table is omitted here.
fn from_row(words: &str) -> ModelPrices {
    let (mut prices, mut rates) = (ModelPrices::default(), Vec::new());
    for (key, value) in words.split(' ').filter_map(|word| word.split_once('=')) {
        let (place, end) = key.split_once(':').unwrap_or((key, ""));
        let (kind, from) = place.split_once('@').unwrap_or((place, "0"));
        let kind = match kind {
            "in" => Kind::Input,
            "out" => Kind::Output,
            "w5" => Kind::Write5m,
            "w1" => Kind::Write1h,
            "r" => Kind::Read,
            "max" => {
                prices.max_input_tokens = value.parse().ok();
                continue;
            }
            "search" => {
                prices.search = decimal(value, DECIMAL_PLACES - 3);
                continue;
            }
            "x" => {
                prices
                    .factors
                    .extend(decimal(value, FACTOR_PLACES).map(|factor| (end.to_owned(), factor)));
                continue;
            }
            _ => continue,
        };
        if let (Some(tier), Ok(from), Some(price)) = (
            tier_of_key(end),
            from.parse(),
            decimal(value, DECIMAL_PLACES - 6),
        ) {
            rates.push(Rate {
                kind,
                tier,
                from,
                price,
            });
        }
    }
    prices.bands = bands(rates);
    prices
}

/// The keys of the LiteLLM file, and the kind of price of each. A key comes before those that it begins with.
const KEYS: [(&str, Kind); 5] = [
    ("input_cost_per_token", Kind::Input),
    ("output_cost_per_token", Kind::Output),
    ("cache_creation_input_token_cost_above_1hr", Kind::Write1h),
    ("cache_creation_input_token_cost", Kind::Write5m),
    ("cache_read_input_token_cost", Kind::Read),
];

/// The fields of an object, as they are written: numbers must not become floats.
type Fields<'a> = BTreeMap<String, &'a RawValue>;
/// The field with the error, if it is in one, and the error.
type FieldError = (Option<String>, &'static str);

/// An entry of a price file; nothing if the model is not for conversations.
fn from_json(entry: &RawValue) -> Result<Option<ModelPrices>, FieldError> {
    let mut fields: Fields<'_> = parsed(entry).ok_or((None, "not an object"))?;
    // LiteLLM writes null for a price that a model does not have.
    fields.retain(|_, value| value.get() != "null");
    let text = |key| fields.get(key).map_or("", |value| value.get());
    // Models of images, speech and embeddings have prices of other units.
    if !matches!(text("mode"), "" | "\"chat\"" | "\"responses\"") {
        return Ok(None);
    }
    // A band begins after its limit, but at it for this provider.
    let after = u64::from(text("litellm_provider") != "\"xai\"");
    let (mut prices, mut rates) = (ModelPrices::default(), Vec::new());
    for (key, value) in &fields {
        let price = |value: &RawValue| {
            decimal(value.get(), DECIMAL_PLACES).ok_or((Some(key.clone()), "not a price in USD"))
        };
        let wrong = |what| (Some(key.clone()), what);
        match key.as_str() {
            "max_input_tokens" => {
                prices.max_input_tokens =
                    Some(decimal(value.get(), 0).ok_or(wrong("not a number of tokens"))?);
            }
            "tiered_pricing" => {
                for part in
                    parsed::<Vec<Fields<'_>>>(value).ok_or(wrong("not an array of objects"))?
                {
                    let range: Option<[&RawValue; 2]> =
                        part.get("range").and_then(|range| parsed(range));
                    let low = range.and_then(|[low, _]| decimal(low.get(), 0));
                    let low = low.ok_or(wrong("a range that is not two numbers of tokens"))?;
                    // A band begins after its limit, the first one at 0.
                    let from = if low == 0 { 0 } else { low.saturating_add(1) };
                    for (name, kind) in KEYS {
                        if let Some(value) = part.get(name) {
                            rates.push(Rate {
                                kind,
                                tier: Tier::Standard,
                                from,
                                price: price(value)?,
                            });
                        }
                    }
                }
            }
            "search_context_cost_per_query" => {
                let sizes: Fields<'_> = parsed(value).ok_or(wrong("not an object"))?;
                prices.search = sizes
                    .get("search_context_size_medium")
                    .map(|value| price(value))
                    .transpose()?;
            }
            "provider_specific_entry" => {
                let factors: Fields<'_> = parsed(value).ok_or(wrong("not an object"))?;
                // Those of other kinds of models are not numbers.
                for (name, value) in factors
                    .into_iter()
                    .filter(|(_, value)| !value.get().starts_with(['{', '[', '"']))
                {
                    let factor = decimal(value.get(), FACTOR_PLACES)
                        .ok_or(wrong("a multiplier that is not a number"))?;
                    prices.factors.push((name, factor));
                }
            }
            _ => {
                if let Some((kind, tier, from)) = price_key(key, after) {
                    rates.push(Rate {
                        kind,
                        tier,
                        from,
                        price: price(value)?,
                    });
                }
            }
        }
    }
    if fields.contains_key("off_peak_pricing") {
        // The price depends on the hour: it is not known by these terms.
        rates.clear();
    }
    if rates.len() > MAX_RATES_PER_MODEL {
        return Err((None, "more than 200 prices"));
    }
    prices.bands = bands(rates);
    Ok(Some(prices))
}

fn parsed<'a, T: serde::Deserialize<'a>>(value: &'a RawValue) -> Option<T> {
    serde_json::from_str(value.get()).ok()
}

/// Returns the kind and the tier of the price of a key, and the number of tokens from which it applies; `None` if the key is
/// not needed.
fn price_key(key: &str, after: u64) -> Option<(Kind, Tier, u64)> {
    let (mut rest, kind) = KEYS
        .iter()
        .find_map(|(name, kind)| Some((key.strip_prefix(name)?, *kind)))?;
    let mut from = 0;
    if let Some(band) = rest.strip_prefix("_above_") {
        let (limit, end) = band.split_once("_tokens")?;
        from = match limit.strip_suffix('k') {
            Some(thousands) => thousands.parse::<u64>().ok()?.checked_mul(1000)?,
            None => limit.parse().ok()?,
        };
        from = from.checked_add(after)?;
        rest = end;
    }
    let tier = if rest.is_empty() {
        ""
    } else {
        rest.strip_prefix('_').filter(|tier| !tier.is_empty())?
    };
    Some((kind, tier_of_key(tier)?, from))
}

/// A number that is not negative, in JSON's form, with this number of decimal places, rounded half up.
fn decimal(text: &str, places: u32) -> Option<u64> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // More digits are not a price, and would overflow.
    if whole.is_empty() || mantissa.len() > 40 {
        return None;
    }
    // The digits before the place that is asked for make the number, the next one rounds it.
    let end = i64::try_from(whole.len()).ok()? + i64::from(exponent) + i64::from(places);
    let (mut number, mut rounds) = (0_u64, 0);
    let digits = whole.bytes().chain(fraction.bytes());
    for (at, digit) in (0_i64..).zip(digits) {
        if !digit.is_ascii_digit() {
            return None;
        }
        let digit = u64::from(digit - b'0');
        if at < end {
            number = number.checked_mul(10)?.checked_add(digit)?;
        } else if at == end {
            rounds = u64::from(digit >= 5);
        }
    }
    let read = i64::try_from(whole.len() + fraction.len()).ok()?;
    if number > 0 {
        let missing = u32::try_from((end - read).max(0)).ok()?;
        // Digits as integers: a float would change the last place of a price, and with it sums.
        number = number.checked_mul(10_u64.checked_pow(missing)?)?;
    }
    number.checked_add(rounds)
}

/// An error in a price file, and its position.
#[derive(Debug, thiserror::Error)]
#[error("{}: {cause}", path.display())]
pub struct PricesError {
    path: PathBuf,
    #[source]
    cause: Cause,
}

#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error("cannot be read: {0}")]
    Read(std::io::Error),
    #[error("not an object in JSON: {0}")]
    Json(serde_json::Error),
    #[error("{place}: {what}")]
    Key { place: String, what: &'static str },
}

impl Cause {
    fn key(model: &str, key: Option<String>, what: &'static str) -> Self {
        let place = key.map_or(model.to_owned(), |key| format!("{model}, {key}"));
        Self::Key { place, what }
    }
}
