//! What must not leave a machine with a session: secrets, and if wanted e-mail addresses and names in paths.
//!
//! A [`Redactor`] finds them in the bytes of a transcript, before anything is made of it, so every format that is
//! made of it lacks the same. What replaces them has the same length: every offset stays what it was.
//! It knows more secrets than [`secrets`](crate::secrets), and takes a value for one if its name says so:
//! a word too much is better than one too few.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use memchr::memchr_iter;

use crate::secrets::{PLACEHOLDERS, Rest, Rule, SecretPlace, has_variety, secret_at, secrets};

/// The longest secret that is found whole, in bytes: a private key.
pub const LONGEST: usize = 16 << 10;

/// Keys and tokens beyond those of [`secrets`](crate::secrets).
const MORE: &[Rule] = &[
    token(
        "an OpenAI API key",
        &["sk-admin-", "sk-None-"],
        20,
        250,
        "_-",
    ),
    token("an API key", &["sk-or-v1-", "sk-"], 32, 200, "_-"),
    token("a Groq API key", &["gsk_"], 40, 100, ""),
    token("an xAI API key", &["xai-"], 40, 120, ""),
    token("a Perplexity API key", &["pplx-"], 32, 100, ""),
    token("a Replicate API token", &["r8_"], 30, 60, ""),
    token("a Fireworks API key", &["fw_"], 20, 60, ""),
    token("a Google OAuth token", &["ya29."], 20, 500, "_-."),
    token("a Google OAuth client secret", &["GOCSPX-"], 20, 60, "_-"),
    token(
        "a GitLab token",
        &["gldt-", "glrt-", "glsoat-", "glcbt-", "glptt-", "glft-"],
        20,
        64,
        "_-",
    ),
    token(
        "a Slack token",
        &["xoxr-", "xoxe-", "xoxe.", "xoxc-", "xoxd-"],
        20,
        300,
        "-%.",
    ),
    token(
        "a Slack webhook",
        &["https://hooks.slack.com/services/"],
        20,
        100,
        "/",
    ),
    token(
        "a Stripe key",
        &["sk_test_", "rk_test_", "whsec_"],
        24,
        120,
        "",
    ),
    token("a SendGrid API key", &["SG."], 40, 100, "_-."),
    token(
        "a DigitalOcean token",
        &["dop_v1_", "doo_v1_", "dor_v1_"],
        64,
        64,
        "",
    ),
    token(
        "a Shopify token",
        &["shpat_", "shpss_", "shpca_", "shppa_"],
        32,
        32,
        "",
    ),
    token("a Linear API key", &["lin_api_", "lin_oauth_"], 32, 80, ""),
    token("a Notion token", &["ntn_", "secret_"], 40, 60, ""),
    token("a Figma token", &["figd_"], 30, 80, "_-"),
    token("a Databricks token", &["dapi"], 32, 40, "-"),
    token("a Netlify token", &["nfp_"], 36, 60, ""),
    token("a Supabase key", &["sbp_", "sb_secret_"], 24, 80, "_-"),
    token(
        "a PlanetScale token",
        &["pscale_tkn_", "pscale_pw_", "pscale_oauth_"],
        30,
        80,
        "_-.",
    ),
    token(
        "a Doppler token",
        &["dp.pt.", "dp.st.", "dp.ct."],
        30,
        100,
        "._-",
    ),
    token("a Docker token", &["dckr_pat_", "dckr_oat_"], 20, 60, "_-"),
    token("a Vault token", &["hvs.", "hvb.", "hvr."], 20, 300, "_-"),
    token("a Pulumi token", &["pul-"], 40, 40, ""),
    token("a Fly.io token", &["FlyV1 ", "fo1_"], 40, 800, "_-+/=,"),
    token("a 1Password token", &["ops_ey"], 80, 1_000, "_-"),
    token("a key of age", &["AGE-SECRET-KEY-1"], 50, 64, ""),
    token("a RubyGems API key", &["rubygems_"], 40, 60, ""),
    token("a crates.io token", &["cio"], 32, 32, ""),
    token("a New Relic key", &["NRAK-"], 27, 27, ""),
    token("a Grafana token", &["glsa_", "glc_"], 30, 200, "_=+/"),
    token("a Postman API key", &["PMAK-"], 50, 70, "-"),
    token(
        "an Atlassian token",
        &["ATATT3xFfGF0", "ATCTT3xFfGF0"],
        100,
        250,
        "_-=",
    ),
    token("a HashiCorp Terraform token", &["atlasv1."], 40, 100, "_-"),
    token("a Mapbox token", &["sk.eyJ"], 40, 200, "_-."),
    token(
        "an authorization header",
        &["Bearer ", "bearer "],
        20,
        1_000,
        "_-.~+/=",
    ),
    token("an authorization header", &["Basic "], 16, 500, "+/="),
];

const fn token(
    name: &'static str,
    starts: &'static [&'static str],
    least: usize,
    most: usize,
    others: &'static str,
) -> Rule {
    Rule {
        name,
        starts,
        rest: Rest::Token(least, most, others),
    }
}

/// Names whose value is a secret, in any case, and what may follow them in a name.
const NAMES: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "accesskey",
    "access_key",
    "privatekey",
    "private_key",
    "credential",
    "authkey",
];
const NAME_ENDS: [&str; 11] = [
    "",
    "s",
    "key",
    "_key",
    "-key",
    "_access_key",
    "accesskey",
    "_value",
    "hash",
    "_hash",
    "_base64",
];
/// A value of such a name.
const VALUE: Range<usize> = 8..513;

/// What precedes the name of a person in a path.
const HOMES: [&str; 6] = [
    "/home/",
    "/Users/",
    "-home-",
    "-Users-",
    "\\\\Users\\\\",
    "/users/",
];

struct Searches {
    more: AhoCorasick,
    /// The rule of each pattern.
    rules: Vec<(&'static str, &'static Rule)>,
    names: AhoCorasick,
    homes: AhoCorasick,
}

static SEARCHES: LazyLock<Option<Searches>> = LazyLock::new(|| {
    let rules = MORE.iter();
    let rules = rules.flat_map(|rule| rule.starts.iter().map(move |start| (*start, rule)));
    let rules: Vec<_> = rules.collect();
    let mut builder = AhoCorasick::builder();
    builder.match_kind(MatchKind::LeftmostLongest);
    let more = builder.build(rules.iter().map(|(start, _)| start)).ok()?;
    let homes = builder.build(HOMES).ok()?;
    let names = builder.ascii_case_insensitive(true).build(NAMES).ok()?;
    Some(Searches {
        more,
        rules,
        names,
        homes,
    })
});

/// Finds what is redacted.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    emails: bool,
    homes: bool,
}

impl Redactor {
    /// Redacts secrets.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Also redacts e-mail addresses.
    #[must_use]
    pub fn emails(mut self, redact: bool) -> Self {
        self.emails = redact;
        self
    }

    /// Also redacts names of people in paths such as `/home/ada`.
    #[must_use]
    pub fn homes(mut self, redact: bool) -> Self {
        self.homes = redact;
        self
    }

    /// Finds what is to be redacted in JSON text, in order and without overlaps. Escapes are understood.
    ///
    /// ```
    /// use transcript_format::redact::{Redactor, redact};
    ///
    /// let mut line = br#"{"text":"export DB_PASSWORD=hunter2hunter2"}"#.to_vec();
    /// let found = Redactor::new().find(&line);
    /// assert_eq!(found[0].kind, "a value that its name calls secret");
    /// redact(&mut line, &found);
    /// assert_eq!(line, br#"{"text":"export DB_PASSWORD=[redacted----]"}"#);
    /// ```
    #[must_use]
    pub fn find(&self, json: &[u8]) -> Vec<SecretPlace> {
        let mut found = secrets(json);
        for place in &mut found {
            if place.kind == "a private key" {
                place.len = key_len(&json[place.offset..], place.len);
            }
        }
        let Some(searches) = &*SEARCHES else {
            return found;
        };
        for start in searches.more.find_iter(json) {
            let (text, rule) = searches.rules[start.pattern().as_usize()];
            found.extend(secret_at(json, start.start(), text, rule));
        }
        for name in searches.names.find_iter(json) {
            found.extend(value_of(json, name.end()));
        }
        found.extend(url_passwords(json));
        if self.emails {
            found.extend(memchr_iter(b'@', json).filter_map(|at| email(json, at)));
        }
        if self.homes {
            let starts = searches.homes.find_iter(json);
            found.extend(starts.filter_map(|start| home(json, start.end())));
        }
        join(found)
    }
}

/// Sorts places, and joins those that overlap: the first one names them.
fn join(mut found: Vec<SecretPlace>) -> Vec<SecretPlace> {
    found.sort_by_key(|place| (place.offset, usize::MAX - place.len));
    let mut joined: Vec<SecretPlace> = Vec::new();
    for place in found {
        match joined.last_mut() {
            Some(last) if place.offset < last.offset + last.len => {
                let end = (last.offset + last.len).max(place.offset + place.len);
                last.len = end - last.offset;
            }
            _ => joined.push(place),
        }
    }
    joined
}

/// Replaces what was found by text of the same length.
pub fn redact(json: &mut [u8], found: &[SecretPlace]) {
    for place in found {
        if let Some(bytes) = json.get_mut(place.offset..place.offset + place.len) {
            mask(bytes, 0, place.len);
        }
    }
}

/// Writes the bytes from `from` on of what replaces `len` bytes.
pub fn mask(bytes: &mut [u8], from: usize, len: usize) {
    const TEXT: &[u8] = b"[redacted";
    // Of a short one only this, which is no Markdown: stars between two of them would be.
    const SHORT: u8 = b'x';
    for (at, byte) in (from..).zip(bytes) {
        *byte = match TEXT.get(at) {
            _ if len <= TEXT.len() => SHORT,
            Some(byte) => *byte,
            None if at + 1 == len => b']',
            None => b'-',
        };
    }
}

/// Returns the length of a private key whose header has this length: up to its end, or as far as it looks like one.
fn key_len(json: &[u8], header: usize) -> usize {
    let json = &json[..json.len().min(LONGEST)];
    let end = memchr::memmem::find(&json[header..], b"-----END ").map(|at| header + at);
    if let Some(end) = end
        && let Some(rest) = memchr::memmem::find(&json[end + 9..], b"-----")
    {
        return end + 9 + rest + 5;
    }
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=\\-: ,".contains(&byte);
    let body = json[header..].iter().take_while(|byte| is_part(**byte));
    header + body.count()
}

/// Returns the value of a name that ends at `at` or soon after.
fn value_of(json: &[u8], at: usize) -> Option<SecretPlace> {
    let rest = &json[at..json.len().min(at + LONGEST)];
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let name = rest.iter().take_while(|byte| is_name(byte)).count();
    let end = std::str::from_utf8(&rest[..name])
        .ok()?
        .to_ascii_lowercase();
    if !NAME_ENDS.contains(&&*end) {
        return None;
    }
    // Quotes, spaces, and one `=` or `:`.
    let is_between = |byte: &u8| b"\\\"' \t=:>".contains(byte);
    let between = rest[name..]
        .iter()
        .take_while(|byte| is_between(byte))
        .count();
    let marks = &rest[name..name + between];
    let count = |mark: u8| marks.iter().filter(|byte| **byte == mark).count();
    if between > 12 || !matches!((count(b'='), count(b':')), (0, 1) | (1, 0 | 1)) {
        return None;
    }
    let start = name + between;
    let len = value_len(&rest[start..]);
    let value = &rest[start..start + len];
    // A value of JSON that follows its name is one as well, unless it is empty.
    let is_code = rest
        .get(start + len)
        .is_some_and(|next| matches!(next, b'(' | b'['));
    (VALUE.contains(&len) && !is_code && is_secret(value)).then_some(SecretPlace {
        kind: "a value that its name calls secret",
        offset: at + start,
        len,
    })
}

/// Returns the length of a value: up to a space, a quotation mark or what ends one in code.
fn value_len(json: &[u8]) -> usize {
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        at += match (byte, json.get(at + 1)) {
            (b'\\', Some(b'u')) => 6,
            (b'\\', Some(b'/' | b'\\')) => 2,
            (
                b'"' | b'\'' | b'`' | b'\\' | b',' | b';' | b'&' | b'<' | b'>' | b'(' | b')' | b'['
                | b']',
                _,
            ) => break,
            (b'{' | b'}' | b'|' | b' ', _) => break,
            _ => 1,
        };
    }
    at.min(json.len())
}

/// Returns whether a value can be a secret, and is none that stands for one.
fn is_secret(value: &[u8]) -> bool {
    let lower = String::from_utf8_lossy(value).to_ascii_lowercase();
    let stands = [
        "$",
        "%",
        "*",
        "process.env",
        "os.",
        "env.",
        "http",
        "./",
        "../",
        "sha256:",
        "ref:",
    ];
    let others = [
        "your",
        "xxxx",
        "....",
        "placeholder",
        "dummy",
        "todo",
        "<",
        "null",
        "undefined",
    ];
    let has = |of: fn(&u8) -> bool| value.iter().any(of);
    let is_mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    let is_odd = has(|byte| b"!#^*@+/=~".contains(byte)) && has(u8::is_ascii_alphabetic);
    (is_mixed || is_odd)
        && has_variety(value)
        && !stands.iter().any(|start| lower.starts_with(start))
        && !others.iter().any(|part| lower.contains(part))
        && !PLACEHOLDERS.contains(&&*lower)
        && value.iter().filter(|byte| **byte == b'/').count() < 4
}

/// Finds passwords in addresses: `scheme://user:password@host`.
fn url_passwords(json: &[u8]) -> impl Iterator<Item = SecretPlace> + '_ {
    memchr::memmem::find_iter(json, "://").filter_map(|at| {
        let start = at + 3;
        let rest = &json[start..json.len().min(start + 512)];
        let is_end = |byte: &u8| b"@/\"\\ <>'`,?#".contains(byte) || byte.is_ascii_control();
        let end = rest
            .iter()
            .position(is_end)
            .filter(|end| rest[*end] == b'@')?;
        let colon = rest[..end].iter().position(|byte| *byte == b':')?;
        let password = &rest[colon + 1..end];
        let lower = String::from_utf8_lossy(password).to_ascii_lowercase();
        let stands =
            password.starts_with(b"$") || password.starts_with(b"{") || password.starts_with(b"*");
        let is_example = PLACEHOLDERS.contains(&&*lower) || lower == "user";
        (password.len() >= 4 && !stands && !is_example).then_some(SecretPlace {
            kind: "a password in an address",
            offset: start + colon + 1,
            len: password.len(),
        })
    })
}

/// Returns the e-mail address around an `@`.
fn email(json: &[u8], at: usize) -> Option<SecretPlace> {
    let is_local = |byte: &u8| byte.is_ascii_alphanumeric() || b"._%+-".contains(byte);
    let before = json[at.saturating_sub(64)..at].iter().rev();
    let mut local = before.take_while(|byte| is_local(byte)).count();
    // The letter of an escape is no part of it.
    if local > 0 && json[..at - local].ends_with(b"\\") {
        local -= 1;
    }
    let rest = &json[at + 1..json.len().min(at + 1 + 253)];
    let is_host = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let len = rest.iter().take_while(|byte| is_host(byte)).count();
    let host = std::str::from_utf8(&rest[..len])
        .ok()?
        .trim_end_matches(['.', '-']);
    let (domain, end) = host.rsplit_once('.')?;
    let is_address = local > 0
        && !domain.is_empty()
        && (2..=24).contains(&end.len())
        && end.bytes().all(|byte| byte.is_ascii_alphabetic())
        // An address of a repository.
        && &json[at - local..at] != b"git";
    is_address.then_some(SecretPlace {
        kind: "an e-mail address",
        offset: at - local,
        len: local + 1 + host.len(),
    })
}

/// Returns the name of a person in a path, which starts at `at`.
fn home(json: &[u8], at: usize) -> Option<SecretPlace> {
    let is_dashed = json[..at].ends_with(b"-");
    let is_name = |byte: &u8| {
        byte.is_ascii_alphanumeric()
            || *byte == b'_'
            || !is_dashed && matches!(byte, b'.' | b'-')
            || *byte >= 0x80
    };
    let len = json[at..].iter().take_while(|byte| is_name(byte)).count();
    (len > 0 && len <= 64).then_some(SecretPlace {
        kind: "a name in a path",
        offset: at,
        len,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(redactor: &Redactor, json: &str) -> String {
        let mut bytes = json.as_bytes().to_vec();
        let found = redactor.find(&bytes);
        redact(&mut bytes, &found);
        assert_eq!(bytes.len(), json.len());
        let text = String::from_utf8(bytes).unwrap();
        if serde_json::from_str::<serde_json::Value>(json).is_ok() {
            let again = serde_json::from_str::<serde_json::Value>(&text);
            assert!(again.is_ok(), "{json}: {text}");
        }
        text
    }

    /// A text of this number of letters and digits that looks random.
    fn random(len: usize, state: &mut u64) -> String {
        const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        let mut letter = || {
            *state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            char::from(LETTERS[(*state >> 33) as usize % LETTERS.len()])
        };
        (0..len).map(|_| letter()).collect()
    }

    /// Where people and programs write secrets; `@` stands for one.
    const PLACES: [&str; 15] = [
        r#"{"text":"@"}"#,
        r#"{"text":"the key is @, use it"}"#,
        r#"{"text":"line\n@\nnext"}"#,
        r#"{"text":"tab\t@"}"#,
        r#"{"text":"curl -H \"X-Key: @\" x"}"#,
        r#"{"text":"{\"key\": \"@\"}"}"#,
        r#"{"text":"{\\\"key\\\":\\\"@\\\"}"}"#,
        r#"{"input":{"command":"export KEY=@; run"}}"#,
        r#"{"text":"key='@'"}"#,
        r#"{"text":"https://x.org/?a=1&key=@&b=2"}"#,
        r#"{"list":["@","x"]}"#,
        r#"{"text":"(@)"}"#,
        r#"{"lines":["+@","x"]}"#,
        r#"{"text":"--- a\n+++ b\n-@\n"}"#,
        r#"{"text":"x\n+@\n"}"#,
    ];

    #[test]
    fn tokens_of_every_rule_are_found_wherever_they_are() {
        let mut state = 7;
        let mut count = 0;
        for rule in MORE {
            let Rest::Token(least, most, _) = rule.rest else {
                continue;
            };
            for start in rule.starts {
                for place in PLACES {
                    for len in [least, usize::midpoint(least, most)] {
                        let secret = random(len, &mut state);
                        let json = place.replace('@', &format!("{start}{secret}"));
                        let text = redacted(&Redactor::new(), &json);
                        assert!(!text.contains(&secret[..8]), "{}: {text}", rule.name);
                        assert!(!text.contains(&secret[len - 4..]), "{}: {text}", rule.name);
                        count += 1;
                    }
                }
            }
        }
        assert!(count > 1_000);
    }

    #[test]
    fn values_that_their_names_call_secret_are_found() {
        let secret = "s3cr3t-Value!x9";
        for line in [
            r#"{"text":"DB_PASSWORD=@"}"#,
            r#"{"text":"export AWS_SECRET_ACCESS_KEY=\"@\"\n"}"#,
            r#"{"text":"password: @\n"}"#,
            r#"{"text":"{\"apiKey\": \"@\"}"}"#,
            r#"{"text":"{\\\"client_secret\\\":\\\"@\\\"}"}"#,
            r#"{"toolUseResult":{"env":{"GITHUB_TOKEN":"@"}}}"#,
            r#"{"text":"api-key = '@'"}"#,
            r#"{"text":"accessToken=@&x=1"}"#,
            r#"{"text":"mysql://root:@@db.example.org/x"}"#,
            r#"{"text":"git clone https://ada:@@git.example.org/x.git"}"#,
        ] {
            let json = line.replacen('@', secret, 1);
            let text = redacted(&Redactor::new(), &json);
            assert!(!text.contains("s3cr3t") && !text.contains("x9"), "{text}");
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for json in [
            r#"{"usage":{"input_tokens":123456789,"cache_read_input_tokens":987654321}}"#,
            r#"{"text":"max_tokens: 8192, tokens: 12345678"}"#,
            r#"{"text":"const password = process.env.DB_PASSWORD1"}"#,
            r#"{"text":"password: string; token: Option<String>"}"#,
            r#"{"text":"let token = get_token2(request)"}"#,
            r#"{"text":"PASSWORD=changeme TOKEN=$GITHUB_TOKEN1 SECRET=${SECRET_2}"}"#,
            r#"{"text":"API_KEY=your-api-key-123"}"#,
            r#"{"uuid":"1a94a3e0-0000-4000-8000-000000000001","sessionId":"1a94a3e0-0000-4000-8000-000000000002"}"#,
            r#"{"text":"https://github.com/ada/x/tree/main, git@github.com:ada/x.git"}"#,
            r#"{"text":"postgres://user:password@localhost/x"}"#,
            r#"{"text":"ask-for-it and risk-free; task-1 sk-learn"}"#,
            r#"{"id":"toolu_01ABCdefGHIjklMNOpqrSTUvwx","requestId":"req_011CabcDEFghiJKLmnoPQRst"}"#,
            r#"{"text":"the secret: a long walk"}"#,
            r#"{"text":"=== primary tokens ===\n--color-primary:#1f6fd0aa"}"#,
        ] {
            assert_eq!(redacted(&Redactor::new(), json), json);
        }
    }

    #[test]
    fn a_private_key_is_redacted_to_its_end() {
        let mut state = 3;
        let body: Vec<String> = (0..40).map(|_| random(64, &mut state)).collect();
        let key = format!(
            "-----BEGIN RSA PRIVATE KEY-----\\n{}\\n-----END RSA PRIVATE KEY-----",
            body.join("\\n")
        );
        let json = format!("{{\"text\":\"before {key} after\"}}");
        let text = redacted(&Redactor::new(), &json);
        assert!(text.starts_with("{\"text\":\"before [redacted-") && text.ends_with("] after\"}"));
        assert!(body.iter().all(|line| !text.contains(&line[..10])));
        // One that is cut off.
        let json = format!("{{\"text\":\"{}\"}}", &key[..1_000]);
        let text = redacted(&Redactor::new(), &json);
        assert!(!text.contains(&body[10][..10]), "{text}");
    }

    #[test]
    fn addresses_and_names_are_redacted_if_wanted() {
        let json = r#"{"cwd":"/home/ada/work","text":"mail\nada.l+x@mail.example.org, C:\\Users\\Ada\\x","key":"-home-ada-work"}"#;
        assert_eq!(redacted(&Redactor::new(), json), json);
        let both = Redactor::new().emails(true).homes(true);
        let text = redacted(&both, json);
        for name in ["ada", "Ada", "example.org"] {
            assert!(!text.contains(name), "{name}: {text}");
        }
        assert!(text.contains("/home/xxx/work") && text.contains("-home-xxx-work"));
        assert!(text.contains(r"mail\n[redacted"), "{text}");
    }

    #[test]
    fn what_replaces_a_secret_is_no_markdown() {
        for len in 1..40 {
            let mut bytes = vec![0; len];
            mask(&mut bytes, 0, len);
            let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"[-]".contains(byte);
            assert!(bytes.iter().all(is_plain), "{len}");
        }
    }

    #[test]
    fn what_replaces_a_secret_can_be_written_in_parts() {
        for len in [4, 9, 10, 11, 40] {
            let mut whole = vec![0; len];
            mask(&mut whole, 0, len);
            for cut in 0..len {
                let mut parts = vec![0; len];
                mask(&mut parts[..cut], 0, len);
                mask(&mut parts[cut..], cut, len);
                assert_eq!(parts, whole);
            }
        }
    }
}
