//! Names whose values are secrets: of variables, keys, fields, headers and options.

use std::ops::Range;

use crate::class::{ALNUM, Class};

/// Parts of such names, by which text is searched, in any case.
pub(crate) const SECRET_NAME_PARTS: &[&str] = &[
    "passw",
    "passphrase",
    "passcode",
    "pass",
    "pwd",
    "_pw",
    "rootpw",
    "dbpw",
    "pw:",
    "pw=",
    "pw ",
    "pw\"",
    "totp",
    "pswd",
    "psk",
    "secret",
    "token",
    "key",
    "auth",
    "cred",
    "jwt",
    "cookie",
    "masterauth",
    "phpsessid",
    "jsessionid",
    "?code",
    "&code",
    "dsn",
    "salt",
    "_pat",
    "mnemonic",
    "phrase",
    "connectionstring",
    "connection_string",
    "sonar.login",
    "sonar_login",
    "client_id",
    "clientid",
    "client-id",
    "client.id",
    "access_id",
    "accessid",
    "reporter_id",
    "app_id",
    "appid",
    "application_id",
    "api_id",
    "api-id",
    "kennwort",
    "pepper",
    "bearer",
    // Not `sessionId`, which each line has.
    "session=",
    "session\"",
    "session'",
    "sessionid=",
    "sessionid\t",
    "_sid",
    ".sid",
    "sid=",
    "ticket=",
    "ticket\"",
    "access_code",
    "accesscode",
];
/// Names of passwords in other languages.
pub(crate) const FOREIGN_PASSWORD_NAMES: [&str; 18] = [
    "clave",
    "zugangscode",
    "contrase\u{f1}a",
    "contrasena",
    "mot de passe",
    "motdepasse",
    "mdp",
    "senha",
    "wachtwoord",
    "has\u{142}o",
    "parola",
    "l\u{f6}senord",
    "\u{43f}\u{430}\u{440}\u{43e}\u{43b}\u{44c}",
    "\u{41f}\u{430}\u{440}\u{43e}\u{43b}\u{44c}",
    "\u{5bc6}\u{7801}",
    "\u{5bc6}\u{78bc}",
    "\u{30d1}\u{30b9}\u{30ef}\u{30fc}\u{30c9}",
    "\u{be44}\u{bc00}\u{bc88}\u{d638}",
];

/// The characters of names.
const NAME_CHARS: Class =
    Class::of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.");
/// The maximum length of a name, in bytes.
const MAX_NAME_LEN: usize = 96;

/// The meaning of a name: the kind of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    /// In words, as a mask and a report have it.
    pub(crate) kind: &'static str,
    pub(crate) trust: Trust,
}

/// The trust in a name: whether its value is a secret without further evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The user says so: whatever it is.
    Always,
    /// The value is one, whatever it looks like.
    Name,
    /// The value is one if it looks like nothing else.
    NameAndForm,
    /// The value is one if it looks random.
    Form,
}

/// Returns the name around a part of it.
pub(crate) fn name_around(text: &[u8], part: &Range<usize>) -> Range<usize> {
    // A part may have a sign that is not of the name.
    let part = match text[part.clone()]
        .iter()
        .position(|byte| NAME_CHARS.has(*byte))
    {
        Some(skipped) => {
            let inner = &text[part.start + skipped..part.end];
            let last = inner
                .iter()
                .rposition(|byte| NAME_CHARS.has(*byte) || !byte.is_ascii());
            part.start + skipped..part.start + skipped + last.map_or(0, |last| last + 1)
        }
        None => part.clone(),
    };
    let before = text[..part.start].iter().rev().take(MAX_NAME_LEN);
    let start = part.start - before.take_while(|byte| NAME_CHARS.has(**byte)).count();
    let after = text[part.end..].iter().take(MAX_NAME_LEN);
    let end = part.end + after.take_while(|byte| NAME_CHARS.has(**byte)).count();
    // An option has its hyphens before it, and a sentence its point behind.
    let first = text[start..end]
        .iter()
        .position(|byte| ALNUM.has(*byte) || *byte == b'_');
    let last = text[start..end]
        .iter()
        .rposition(|byte| ALNUM.has(*byte) || *byte == b'_');
    match (first, last) {
        (Some(first), Some(last)) => start + first..start + last + 1,
        _ => part,
    }
}

/// The kind of a password.
const PASSWORD: &str = "password";
/// Names of several values.
const PLURALS: [&str; 6] = [
    "passwords",
    "secrets",
    "tokens",
    "credentials",
    "creds",
    "keys",
];
/// Words of a name that number its value or name its encoding, and do not change its kind.
const DETAIL_WORDS: [&str; 47] = [
    "",
    "assign",
    "value",
    "val",
    "str",
    "string",
    "text",
    "txt",
    "plain",
    "plaintext",
    "clear",
    "raw",
    "env",
    "prod",
    "production",
    "dev",
    "development",
    "test",
    "testing",
    "staging",
    "stage",
    "live",
    "sandbox",
    "old",
    "new",
    "current",
    "previous",
    "default",
    "backup",
    "primary",
    "secondary",
    "main",
    "base",
    "hex",
    "hash",
    "hashed",
    "enc",
    "encrypted",
    "encoded",
    "decoded",
    "b64",
    "data",
    "ci",
    "local",
    "demo",
    "a",
    "b",
];
/// Words that end like a password.
const WORDS_ENDING_IN_PASS: [&str; 12] = [
    "askpass",
    "bypass",
    "compass",
    "trespass",
    "surpass",
    "encompass",
    "underpass",
    "overpass",
    "multipass",
    "subpass",
    "renderpass",
    "minipass",
];
/// Words that name a secret anywhere in the name of a constant.
const SECRET_WORDS: [&str; 7] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "key",
    "apikey",
];
/// Words with which such a constant is about something else than a secret.
const OTHER_SUBJECTS: [&str; 46] = [
    "file",
    "path",
    "dir",
    "url",
    "uri",
    "host",
    "name",
    "id",
    "ids",
    "type",
    "kind",
    "length",
    "len",
    "size",
    "min",
    "max",
    "limit",
    "count",
    "total",
    "policy",
    "reset",
    "field",
    "expiry",
    "expires",
    "ttl",
    "age",
    "header",
    "prefix",
    "suffix",
    "regex",
    "pattern",
    "format",
    "enabled",
    "required",
    "algorithm",
    "version",
    "provider",
    "endpoint",
    "label",
    "hint",
    "expiration",
    "change",
    "changed",
    "inline",
    "by",
    "on",
];

/// Returns the meaning of a name, `None` if its value is not a secret.
pub(crate) fn meaning(name: &[u8]) -> Option<Meaning> {
    let name = std::str::from_utf8(name).ok()?;
    let of = |kind, trust| Some(Meaning { kind, trust });
    if FOREIGN_PASSWORD_NAMES.contains(&name.to_lowercase().as_str()) {
        return of(PASSWORD, Trust::Name);
    }
    let words = telling_words(name);
    let (last, before) = words.split_last()?;
    // `Access-Control-Allow-Credentials`.
    if words.iter().any(|word| word == "allow") {
        return None;
    }
    let before = before.last().map_or("", String::as_str);
    let last = if PLURALS.contains(&last.as_str()) {
        last.strip_suffix('s')?
    } else {
        last.as_str()
    };
    if let Some(trust) = password(last, before) {
        return of(PASSWORD, trust);
    }
    match last {
        "phrase" if ["seed", "mnemonic", "recovery"].contains(&before) => {
            return of("seed phrase", Trust::Name);
        }
        "mnemonic" => return of("seed phrase", Trust::NameAndForm),
        "string" if before == "connection" => return of("connection string", Trust::Form),
        "code" if before == "access" => return of("token", Trust::NameAndForm),
        "code" if before.is_empty() => return of("token", Trust::Form),
        "pepper" | "totp" => return of("secret", Trust::NameAndForm),
        "pat" | "jwt" | "login" | "bearer" => return of("token", Trust::Form),
        "dsn" | "salt" | "sas" => return of("secret", Trust::Form),
        "auth" | "authorization" => return of("credential", Trust::Form),
        "cookie" | "phpsessid" | "jsessionid" => return of("cookie", Trust::Form),
        "session" | "sessionid" | "sid" | "ticket" if ["", "connect"].contains(&before) => {
            return of("session", Trust::Form);
        }
        "id" if before == "access" => return of("key", Trust::NameAndForm),
        "id" if ["client", "app", "application", "api", "reporter"].contains(&before) => {
            return of("client id", Trust::Form);
        }
        _ => {}
    }
    if last.ends_with("secret") {
        return of("secret", Trust::Name);
    }
    // A token for the next page of a list is not a secret.
    const PAGING_WORDS: [&str; 7] = [
        "next",
        "page",
        "continuation",
        "pagination",
        "starting",
        "sync",
        "change",
    ];
    if last == "token" && PAGING_WORDS.contains(&before) {
        return None;
    }
    if last.ends_with("token") {
        return of("token", Trust::NameAndForm);
    }
    if last.ends_with("credential") || last.ends_with("cred") {
        return of("credential", Trust::NameAndForm);
    }
    let which = match last.strip_suffix("key")? {
        "" => before,
        which => which,
    };
    of("key", key(which)?)
}

/// Returns the meaning of a name of two words, the second of which is at `name`: `api key`, `seed phrase`.
pub(crate) fn meaning_of_two(text: &[u8], name: &Range<usize>) -> Option<Meaning> {
    const SECOND_WORDS: [&[u8]; 4] = [b"key", b"keys", b"phrase", b"code"];
    let second = text[name.clone()].to_ascii_lowercase();
    let before = text[..name.start].strip_suffix(b" ")?;
    let first = before.iter().rev().take(24);
    let first = first.take_while(|byte| byte.is_ascii_alphabetic()).count();
    let first = &before[before.len() - first..];
    if first.is_empty() || !SECOND_WORDS.contains(&second.as_slice()) {
        return None;
    }
    // In prose, `key` after any word is too frequent to look at each of them.
    meaning(&[first, b"_", &second].concat()).filter(|meaning| meaning.trust != Trust::Form)
}

/// Returns the words of a name up to the one that names the kind of its value.
fn telling_words(name: &str) -> Vec<String> {
    let mut words = words(name);
    // `password_for_production`.
    if let Some(at) = words.iter().skip(1).position(|word| word == "for") {
        words.truncate(at + 1);
    }
    // Of constants, the kind of the value may come first: `API_KEY_STRIPE`, `PASSWORD_ROOT`.
    if !name.contains(|character: char| character.is_ascii_lowercase()) {
        let is_telling = |word: &String| SECRET_WORDS.contains(&word.as_str());
        let is_other = |word: &String| OTHER_SUBJECTS.contains(&word.as_str());
        if let Some(last) = words.iter().rposition(is_telling)
            && words.len() - last <= 3
            && !words[last + 1..].iter().any(is_other)
        {
            words.truncate(last + 1);
        }
    }
    let is_detail = |word: &String| DETAIL_WORDS.contains(&word.as_str());
    while words.len() > 1 && words.last().is_some_and(is_detail) {
        words.pop();
    }
    words
}

/// Returns how far a name is one of a password, by its last word and the one before.
fn password(last: &str, before: &str) -> Option<Trust> {
    const PASSWORD_ENDS: [&str; 8] = [
        "password",
        "passwd",
        "passwort",
        "kennwort",
        "passphrase",
        "passcode",
        "pswd",
        "passwrd",
    ];
    const PASSWORD_WORDS: [&str; 8] = [
        "requirepass",
        "masterauth",
        "psk",
        "rootpw",
        "dbpwd",
        "userpwd",
        "adminpwd",
        "dbpw",
    ];
    let is_one =
        PASSWORD_ENDS.iter().any(|end| last.ends_with(end)) || PASSWORD_WORDS.contains(&last);
    const NUMBER_WORDS: [&str; 14] = [
        "one", "two", "three", "single", "multi", "first", "second", "third", "last", "next",
        "final", "each", "per", "t",
    ];
    // `dbpass`, not `bypass`.
    let ends_so = last.len() > 4 && last.ends_with("pass") && !WORDS_ENDING_IN_PASS.contains(&last);
    match last {
        _ if is_one || ends_so => Some(Trust::Name),
        "phrase" if before == "pass" => Some(Trust::Name),
        // `two-pass`, `must pass`.
        "pass" if NUMBER_WORDS.contains(&before) => None,
        "pass" | "pwd" | "pw" if !before.is_empty() => Some(Trust::Name),
        "pass" | "pwd" | "pw" => Some(Trust::NameAndForm),
        _ => None,
    }
}

/// Returns how far a key of this kind is a secret; `None` if it never is one.
fn key(which: &str) -> Option<Trust> {
    match which {
        // Keys of databases and caches, keys that are published, keys of a keyboard, and words that end in `key`.
        "public" | "pub" | "publishable" | "primary" | "foreign" | "cache" | "sort"
        | "partition" | "index" | "i" | "hot" | "mon" | "tur" | "tor" | "don" | "wh" | "jo"
        | "jockey" | "recv" | "send" | "list" | "delete" | "import" | "export" | "refresh" => None,
        "encryption" | "master" | "secret" | "private" | "preshared" | "shared" | "signing"
        | "account" => Some(Trust::Name),
        "api" | "access" | "auth" | "encrypt" | "crypto" | "decryption" | "sign" | "service"
        | "admin" | "storage" | "consumer" | "license" | "ssh" | "gpg" | "pgp" | "rsa" | "jwt"
        | "hmac" | "aes" | "deploy" | "deployment" | "webhook" | "subscription" | "root"
        | "recovery" | "security" | "ingest" | "ingestion" | "management" | "integration"
        | "cert" | "tls" | "ssl" | "device" | "token" | "clientapi" | "myapi" => {
            Some(Trust::NameAndForm)
        }
        _ => Some(Trust::Form),
    }
}

/// Returns the words of a name in lower case, without the numbers behind them.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut previous = '_';
    let mut characters = name.chars().peekable();
    while let Some(character) = characters.next() {
        // `dbPassword`, `key2Secret`, and `APIKey`, whose last capital starts the next word.
        let is_start = character.is_ascii_uppercase()
            && (previous.is_ascii_lowercase()
                || previous.is_ascii_digit()
                || previous.is_ascii_uppercase()
                    && characters.peek().is_some_and(char::is_ascii_lowercase));
        if !character.is_ascii_alphanumeric() || is_start {
            words.push(std::mem::take(&mut word));
        }
        if character.is_ascii_alphanumeric() {
            word.push(character.to_ascii_lowercase());
        }
        previous = character;
    }
    words.push(word);
    for word in &mut words {
        // `password2` is a password.
        let len = word
            .trim_end_matches(|character: char| character.is_ascii_digit())
            .len();
        word.truncate(len);
    }
    // A part of a name may be empty, as in `_auth` and `a--b`.
    let last = words.pop();
    words.retain(|word| !word.is_empty());
    words.extend(last);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trust(name: &str) -> Option<Trust> {
        meaning(name.as_bytes()).map(|meaning| meaning.trust)
    }

    #[test]
    fn names_say_whether_their_values_are_secrets() {
        for name in [
            "password",
            "DB_PASSWORD",
            "dbPassword",
            "DB_PASS",
            "DB_PWD",
            "PGPASSWORD",
            "ClearTextPassword",
            "password2",
            "ADMIN_PASSWORD_PROD",
            "client_secret",
            "SECRET_KEY_BASE",
            "RAILS_MASTER_KEY",
            "ENCRYPTION_KEY",
            "AccountKey",
            "passwordHash",
            "JWT_SECRET",
            "PrivateKey",
        ] {
            assert_eq!(trust(name), Some(Trust::Name), "{name}");
        }
        for name in [
            "token",
            "accessToken",
            "GITHUB_TOKEN",
            "_authToken",
            "api_key",
            "apiKey",
            "APIKEY",
            "X-Api-Key",
            "pass",
            "Pwd",
            "credential",
            "AWS_ACCESS_KEY",
        ] {
            assert_eq!(trust(name), Some(Trust::NameAndForm), "{name}");
        }
        for name in [
            "key",
            "ADOBE_KEY",
            "auth",
            "_auth",
            "Authorization",
            "cookie",
            "SENTRY_DSN",
            "GITHUB_PAT",
            "client-key-data",
        ] {
            assert_eq!(trust(name), Some(Trust::Form), "{name}");
        }
        for name in [
            "password_file",
            "token_type",
            "secretName",
            "public_key",
            "primaryKey",
            "monkey",
            "keyboard",
            "passed",
            "author",
            "tokenizer",
            "secret_id",
            "passwordField",
            "cache_key",
            "keyword",
        ] {
            assert_eq!(trust(name), None, "{name}");
        }
    }
}
