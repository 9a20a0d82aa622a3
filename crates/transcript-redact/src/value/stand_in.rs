//! Values that are not secrets in a position where one could be: references, code, words, placeholders.

use crate::class::{ALNUM, Class};
use crate::random::{is_name_like, is_tangled, looks_random, turns, variety};

/// Returns whether a text is one that people read: a sentence, or a label of a field.
pub(super) fn is_label(value: &[u8]) -> bool {
    let text = String::from_utf8_lossy(value);
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_plain = |word: &&str| {
        let word = word.trim_matches(|character: char| !character.is_alphanumeric());
        word.chars().all(char::is_alphabetic)
            || word.chars().all(|character| character.is_ascii_digit())
    };
    let has_capital = text.chars().next().is_some_and(char::is_uppercase);
    words.iter().all(is_plain) && has_capital || has_label_word(value)
}

/// Returns whether a text has a word that belongs to a sentence or a label, also a part of one: `Passwortfeld`.
pub(super) fn has_label_word(value: &[u8]) -> bool {
    const SECRET_WORD_PARTS: [&str; 6] =
        ["passw", "kennw", "contrase", "token", "secret", "mot de"];
    const LABEL_WORDS: [&str; 58] = [
        "minimum",
        "maximum",
        "characters",
        "chars",
        "letters",
        "digits",
        "length",
        "least",
        "should",
        "can",
        "may",
        "will",
        "no",
        "yes",
        "see",
        "use",
        "at",
        "more",
        "than",
        "on",
        "by",
        "from",
        "if",
        "when",
        "password",
        "passwords",
        "token",
        "secret",
        "key",
        "enter",
        "your",
        "required",
        "invalid",
        "must",
        "is",
        "the",
        "please",
        "of",
        "for",
        "to",
        "not",
        "new",
        "confirm",
        "forgot",
        "reset",
        "show",
        "hide",
        "a",
        "an",
        "or",
        "and",
        "in",
        "with",
        "be",
        "api",
        "field",
        "used",
        "user",
    ];
    let text = String::from_utf8_lossy(value).to_lowercase();
    let mut words = text.split(|character: char| !character.is_alphanumeric());
    SECRET_WORD_PARTS.iter().any(|part| text.contains(part))
        || words.any(|word| LABEL_WORDS.contains(&word))
}

/// Returns whether a value stands for a secret that is elsewhere: a variable, a template, a place.
pub(super) fn is_reference(value: &[u8]) -> bool {
    // A password may start with these as well, so they are not enough alone.
    const WEAK_REFERENCE_STARTS: [&str; 7] = ["<", "./", "../", "~/", "pass:", "bw:", "file:"];
    const REFERENCE_STARTS: [&str; 39] = [
        "#/",
        "--",
        "${",
        "$(",
        "{{",
        "<%",
        "#{",
        "@{",
        "%(",
        "%{",
        "$[",
        "$$",
        "{%",
        "((",
        "process.env",
        "os.environ",
        "os.getenv",
        "env.",
        "env(",
        "env[",
        "import.meta",
        "secrets.",
        "vault:",
        "op://",
        "!ref",
        "!sub",
        "!getatt",
        "!vault",
        "arn:",
        "projects/",
        "http://",
        "https://",
        "ref+",
        "sha256:",
        "[redacted",
        "data:",
        "urn:",
        "git@",
        "encrypted:",
    ];
    let lower = value[..value.len().min(16)].to_ascii_lowercase();
    let is_number = value.len() <= 18
        && lower.starts_with(b"0x")
        && value[2..].iter().all(u8::is_ascii_hexdigit);
    if is_number {
        return true;
    }
    let starts = |starts: &[&str]| {
        starts
            .iter()
            .any(|start| lower.starts_with(start.as_bytes()))
    };
    if starts(&REFERENCE_STARTS) {
        return true;
    }
    const TRIMMED_BYTES: &[u8] = b"<>{}[]()%/.";
    let first = value.iter().position(|byte| !TRIMMED_BYTES.contains(byte));
    let last = value.iter().rposition(|byte| !TRIMMED_BYTES.contains(byte));
    // A secret between brackets is still one.
    if let (Some(first), Some(last)) = (first, last)
        && is_tangled(&value[first..=last])
    {
        return false;
    }
    if starts(&WEAK_REFERENCE_STARTS) {
        return true;
    }
    let encloses = |open: u8, close: u8| {
        value.first() == Some(&open) && value.last() == Some(&close) && value.len() > 1
    };
    // `<token>`, `{token}`, `%TOKEN%`: a person or a template fills it in.
    if encloses(b'<', b'>')
        || encloses(b'{', b'}')
        || encloses(b'[', b']') && value.len() < 40
        || encloses(b'(', b')')
        || encloses(b'%', b'%')
    {
        return true;
    }
    // A variable: one case, no random letters.
    if let Some(name) = value.strip_prefix(b"$") {
        let end = name
            .iter()
            .take_while(|byte| ALNUM.has(**byte) || **byte == b'_')
            .count();
        let name = &name[..end];
        let is_one_case = !name.iter().any(u8::is_ascii_lowercase)
            || !name.iter().any(u8::is_ascii_uppercase)
            || !name.iter().any(u8::is_ascii_digit);
        return !name.is_empty() && is_one_case && !looks_random(name);
    }
    let has = |part: &str| memchr::memmem::find(value, part.as_bytes()).is_some();
    // A regular expression.
    let is_pattern = value.starts_with(b"/^")
        || [
            "\\w", "\\W", "\\d", "\\s", "\\b", "[^", "[a-z", "[A-Z", "(?", ".*",
        ]
        .iter()
        .any(|sign| has(sign));
    let is_path = value[0] == b'/' && !looks_random(value) && value[1..].contains(&b'/');
    has("${")
        || has("{{")
        || has("$(")
        || is_path
        || is_pattern
        || is_rule(value)
        || value.len() < 24 && (has("%s") || has("%d") || has("%v"))
        || value[0] == b':' && value[1..].iter().all(u8::is_ascii_lowercase)
}

/// Returns whether a text is a rule of a form, such as `required|min:8`.
fn is_rule(value: &[u8]) -> bool {
    const VALIDATION_RULES: [&[u8]; 6] = [
        b"required",
        b"nullable",
        b"sometimes",
        b"string",
        b"confirmed",
        b"min",
    ];
    let is_lower =
        |byte: &u8| byte.is_ascii_lowercase() || b"|:,_".contains(byte) || byte.is_ascii_digit();
    value.contains(&b'|')
        && value.iter().all(is_lower)
        && value.split(|byte| *byte == b'|').any(|rule| {
            let name = rule.split(|byte| *byte == b':').next().unwrap_or_default();
            VALIDATION_RULES.contains(&name)
        })
}

/// Returns whether a text is part of a program: access to a member, a call, a path of names.
pub(super) fn is_code(value: &[u8]) -> bool {
    const CODE_CHARS: Class = Class::of(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$.?!:>-()[]{}\"'*&,<|/",
    );
    let inner = value
        .trim_ascii_start()
        .strip_prefix(b"*")
        .or(value.strip_prefix(b"&"))
        .or(value.strip_prefix(b"!"));
    // No name is like this.
    let has = |of: fn(&u8) -> bool| value.iter().any(of);
    let is_tangled =
        turns(value) >= 2 && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    let has_path = memchr::memmem::find(value, b"::").is_some();
    // Members of members, also of one that is assigned to: `a.b=c.d`.
    let head = value.split(|byte| *byte == b'=').next().unwrap_or_default();
    let mut members = head.split(|byte| *byte == b'.');
    let is_own = head.starts_with(b"self.") || head.starts_with(b"this.");
    let is_member = head.contains(&b'.')
        && members.all(|part| is_identifier(part) && (is_own || !looks_random(part)))
        && (head.len() < value.len() || is_own);
    let has = |part: &str| memchr::memmem::find(value, part.as_bytes()).is_some();
    let is_expression =
        ["!=", "&&", "=>", "#["].iter().any(|sign| has(sign)) || has("?") && has(":") && has(".");
    // A type, or a member, that is named after what it is of: `ed25519.PrivateKey`, `KeyTypes`.
    let is_type_name = value.split(|byte| *byte == b'.').all(is_identifier)
        && ["Key", "Token", "Secret", "Password", "Credential"]
            .iter()
            .any(|word| has(word));
    if is_member || is_expression || is_type_name {
        return true;
    }
    if is_tangled && !has_path && !value.iter().any(|byte| b"([".contains(byte)) {
        return false;
    }
    // A pointer, a reference, a macro, a path.
    let is_pointer = inner.is_some_and(|inner| {
        inner.is_empty()
            || inner == b"mut"
            || inner == b"const"
            || is_identifier(inner) && !looks_random(inner)
    });
    let value = inner.unwrap_or(value);
    let is_constant =
        is_identifier(value) && value.contains(&b'_') && !value.iter().any(u8::is_ascii_lowercase);
    let is_macro = value
        .iter()
        .position(|byte| *byte == b'!')
        .is_some_and(|at| {
            at > 0
                && is_identifier(&value[..at])
                && matches!(value.get(at + 1), Some(b'(' | b'[' | b'{'))
        });
    // A call, or an element of a list.
    let name = value
        .iter()
        .take_while(|byte| ALNUM.has(**byte) || b"_.:".contains(byte))
        .count();
    let is_call =
        name > 0 && matches!(value.get(name), Some(b'(' | b'[')) && !looks_random(&value[..name]);
    if is_call || is_pointer || has_path || is_macro || is_constant || value.starts_with(b"__") {
        return true;
    }
    if !value.iter().all(|byte| CODE_CHARS.has(*byte)) {
        return false;
    }
    let is_start = value[0].is_ascii_alphabetic() || b"_$&*(!:[{".contains(&value[0]);
    let has = |part: &str| memchr::memmem::find(value, part.as_bytes()).is_some();
    let has_sign = has("(")
        || has("[")
        || has("{")
        || has("::")
        || has("->")
        || has("?.")
        || has("<")
        || is_start && has(".") && is_name_like(value);
    let is_member = has(".") && value.split(|byte| *byte == b'.').all(is_identifier);
    is_start && (has_sign && !looks_random(value) || is_member && !looks_random(value))
        || is_identifier(value) && value.contains(&b'_') && is_name_like(value)
}

pub(super) fn is_identifier(text: &[u8]) -> bool {
    text.first()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
        && text.iter().all(|byte| ALNUM.has(*byte) || *byte == b'_')
}

/// Returns whether a word is one that stands where a value may stand, in a program or its documentation.
pub(super) fn is_known_word(value: &[u8]) -> bool {
    const KNOWN_WORDS: [&str; 22] = [
        "string",
        "object",
        "number",
        "hidden",
        "static",
        "masked",
        "random",
        "global",
        "password",
        "required",
        "optional",
        "undefined",
        "boolean",
        "generated",
        "encrypted",
        "sensitive",
        "redacted",
        "disabled",
        "unchanged",
        "prompted",
        "computed",
        "protected",
    ];
    KNOWN_WORDS
        .iter()
        .any(|known| known.as_bytes() == value.to_ascii_lowercase())
        || is_type(value)
}

/// Returns whether a word names a type.
pub(super) fn is_type(value: &[u8]) -> bool {
    const TYPE_NAMES: [&str; 24] = [
        "pulong64",
        "ulong64",
        "uint128",
        "u128",
        "u8",
        "u16",
        "u32",
        "u64",
        "i8",
        "i16",
        "i32",
        "i64",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "base64",
        "utf8",
        "float64",
        "uint8array",
    ];
    const ALGORITHM_NAMES: [&str; 9] = [
        "sha1", "sha256", "sha512", "md5", "hs256", "rs256", "es256", "bcrypt", "aes256",
    ];
    let lower = value.to_ascii_lowercase();
    let is = |names: &[&str]| names.iter().any(|name| name.as_bytes() == lower);
    is(&TYPE_NAMES) || is(&ALGORITHM_NAMES)
}

/// Returns whether a word names an algorithm, also a part of one: `HMAC-SHA256`, `Argon2id`.
pub(super) fn is_algorithm(value: &[u8]) -> bool {
    const ALGORITHM_PARTS: [&str; 11] = [
        "sha1", "sha2", "sha3", "sha5", "hmac", "argon2", "bcrypt", "scrypt", "pbkdf2", "aes1",
        "aes2",
    ];
    let lower = value.to_ascii_lowercase();
    ALGORITHM_PARTS
        .iter()
        .any(|name| memchr::memmem::find(&lower, name.as_bytes()).is_some())
}

/// Returns whether a value stands for a secret in an example, or for none.
pub(crate) fn stands_for_one(value: &[u8]) -> bool {
    // Words of which examples are made.
    const PLACEHOLDER_WORDS: [&str; 107] = [
        "define",
        "undef",
        "kennwort",
        "passphrase",
        "passwort",
        "registry",
        "secrets",
        "tokens",
        "your",
        "my",
        "the",
        "a",
        "an",
        "api",
        "key",
        "apikey",
        "token",
        "secret",
        "password",
        "passwd",
        "pass",
        "pwd",
        "here",
        "goes",
        "insert",
        "enter",
        "change",
        "me",
        "changeme",
        "changeit",
        "replace",
        "with",
        "this",
        "in",
        "production",
        "example",
        "placeholder",
        "dummy",
        "sample",
        "test",
        "testing",
        "foo",
        "bar",
        "baz",
        "todo",
        "tbd",
        "null",
        "none",
        "nil",
        "undefined",
        "true",
        "false",
        "string",
        "str",
        "text",
        "value",
        "redacted",
        "hidden",
        "masked",
        "removed",
        "omitted",
        "user",
        "username",
        "abc",
        "empty",
        "unset",
        "required",
        "optional",
        "new",
        "old",
        "some",
        "fake",
        "mock",
        "default",
        "env",
        "var",
        "variable",
        "of",
        "is",
        "not",
        "set",
        "access",
        "client",
        "auth",
        "bearer",
        "basic",
        "private",
        "public",
        "admin",
        "root",
        "postgres",
        "mysql",
        "guest",
        "demo",
        "db",
        "to",
        "xxx",
        "local",
        "dev",
        "development",
        "invalid",
        "no",
        "yes",
        "any",
        "super",
        "top",
        "credential",
    ];
    let is_row = variety(value) <= 2 && value.len() != 2;
    let is_cut = value.ends_with(b"...") || value.ends_with("\u{2026}".as_bytes());
    // The text before or after the stars of a mask may still be a secret.
    let masks = ["***", "xxxx", "XXXX"].iter();
    let mut masks = masks.filter_map(|mask| {
        let at = memchr::memmem::find(value, mask.as_bytes())?;
        let len = value[at..]
            .iter()
            .take_while(|byte| **byte == mask.as_bytes()[0])
            .count();
        Some((&value[..at], &value[at + len..]))
    });
    let has_stars = masks.any(|(before, after)| !is_tangled(before) && !is_tangled(after));
    if is_row
        || is_cut && value.len() < 24
        || has_stars
        || value.ends_with(b"EXAMPLE")
        || value.ends_with(b"EXAMPLEKEY")
    {
        return true;
    }
    // Words with signs of names between them, one of which says what should be here.
    let parts = || {
        value
            .split(|byte| b"_-./".contains(byte))
            .filter(|part| !part.is_empty())
    };
    let is_word = |part: &[u8]| part.iter().all(u8::is_ascii_alphabetic);
    let is_known = |part: &[u8]| {
        part.len() > 1
            && PLACEHOLDER_WORDS
                .iter()
                .any(|known| part.eq_ignore_ascii_case(known.as_bytes()))
    };
    // Such as `your-token-here`.
    if parts().count() > 1 && parts().all(is_word) && parts().any(is_known) {
        return true;
    }
    let mut known = 0;
    let mut rest = value;
    while let Some(at) = rest.iter().position(u8::is_ascii_alphabetic) {
        let word = &rest[at..];
        let first_upper = word
            .iter()
            .take_while(|byte| byte.is_ascii_uppercase())
            .count();
        let lower = word[first_upper..]
            .iter()
            .take_while(|byte| byte.is_ascii_lowercase())
            .count();
        let len = match (first_upper, lower) {
            (upper, 0) => upper,
            (0 | 1, lower) => first_upper + lower,
            // `APIKey`.
            (upper, _) => upper - 1,
        };
        // One word that is not known can be a password among others.
        if !is_made_of(&word[..len].to_ascii_lowercase(), &PLACEHOLDER_WORDS) {
            return false;
        }
        known += 1;
        rest = &rest[at + len..];
    }
    // Numbers make a password of the name of a user.
    const USER_NAMES: [&str; 7] = [
        "admin", "root", "postgres", "mysql", "guest", "user", "demo",
    ];
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let lower = value.to_ascii_lowercase();
    let is_user = USER_NAMES
        .iter()
        .any(|user| lower.starts_with(user.as_bytes()));
    known > 0 && digits <= 8 && !(is_user && digits >= 3)
}

/// Returns whether a word is made of others, such as `mypassword`.
pub(super) fn is_made_of(word: &[u8], words: &[&str]) -> bool {
    const MAX_WORD_LEN: usize = 24;
    if word.len() > MAX_WORD_LEN {
        return false;
    }
    let mut ends = [false; MAX_WORD_LEN + 1];
    ends[0] = true;
    for start in 0..word.len() {
        if ends[start] {
            let starting = words
                .iter()
                .filter(|known| word[start..].starts_with(known.as_bytes()));
            starting.for_each(|known| ends[start + known.len()] = true);
        }
    }
    ends[word.len()]
}
