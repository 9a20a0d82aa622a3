//! A line of JSON is one after masking, with the same keys and lists, whatever it contains.

use serde_json::{Map, Value};
use transcript_redact::Redactor;

use crate::samples::Random;

const LINE: &str = "MIIEowIBAAKCAQEAx7Kq2pLm9Zt4Rw8Yb3Nc6Vd1Fg5Hj0SkQaWsEdRfTgYhUjIk";

/// Texts that lead to secrets, end them, or surround them.
const PARTS: [&str; 83] = [
    "sudo -S ls <<< '",
    "sshpass -p'",
    "curl -u 'a:",
    "sqlcmd -U a -P'",
    "new PDO('a', 'b', '",
    "vault login ",
    "net user a ",
    "user a on >",
    "createUser a SHA \"",
    "\"password\", \"",
    "passwords: [",
    "{\"name\": \"password\", \"value\": \"",
    "INSERT INTO a (password) VALUES ('",
    "id,password\n1,",
    "the password is ",
    "page.fill('#password', '",
    "expect \"password:\"\nsend \"",
    "prime1:\n 00:aa:",
    "\"random_password\" \"result\": \"",
    "UEFTU1dPUkQ9",
    "echo '",
    " | sudo -S ls",
    "jwt.sign(a, '",
    "a ? 'b' : '",
    "password = live || '",
    "[redacted: password]",
    "Zx81k3Lm",
    "DB_PASSWORD=",
    "password: ",
    "password",
    "secret: ",
    "api_key",
    "token=",
    "Authorization: Bearer ",
    "Authorization",
    "Cookie: sid=",
    "mysql -p",
    "curl -u a:",
    "sshpass -p ",
    "kind: Secret\ndata:\n  a: ",
    "kind",
    "Secret",
    "data",
    "kty",
    "RSA",
    "d",
    "https://a:",
    "@h/x",
    ":5432:d:u:",
    "-----BEGIN RSA PRIVATE KEY-----\n",
    "-----END RSA PRIVATE KEY-----",
    LINE,
    "\n",
    "\\n",
    "\"",
    "'",
    "\\",
    "\\\"",
    "\\u0041",
    "\u{1b}[31m",
    "%3D",
    "&quot;",
    "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6",
    "sk-ant-",
    "eyJhbGciOiJI.eyJzdWIiOiIx.",
    "x7Kq2pLm9",
    "hunter2",
    "my long pass phrase",
    " ",
    ", ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    "\u{e4}\u{4e2d}\u{1f600}",
    "value",
    "name",
    "    12\u{2192}",
    "+",
    "-",
    "ada@example.org",
    "/home/ada/x",
];

fn text(random: &mut Random) -> String {
    (0..random.below(6)).map(|_| *random.pick(&PARTS)).collect()
}

fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 6 } else { 9 }) {
        0 => Value::from(random.below(1 << 40)),
        1 => Value::from(random.below(100_000)),
        2 => [Value::Null, Value::from(true), Value::from(-1.5)][random.below(3)].clone(),
        3..=5 => Value::from(text(random)),
        6 => (0..random.below(4))
            .map(|_| value(random, depth - 1))
            .collect(),
        _ => Value::Object(object(random, depth - 1)),
    }
}

/// Keys that no mask may replace.
const KEYS: [&str; 4] = ["uuid", "message", "content", "toolUseResult"];

fn object(random: &mut Random, depth: usize) -> Map<String, Value> {
    let key = |random: &mut Random| match random.below(2) {
        0 => (*random.pick(&KEYS)).to_owned(),
        _ => text(random),
    };
    (0..1 + random.below(4))
        .map(|_| (key(random), value(random, depth)))
        .collect()
}

/// Writes a value with blanks or without, as the writers of different languages do.
fn written(value: &Value, is_spaced: bool) -> String {
    let (comma, colon) = if is_spaced { (", ", ": ") } else { (",", ":") };
    let key = |key: &String| Value::from(key.as_str()).to_string();
    match value {
        Value::Array(list) => {
            let list: Vec<String> = list.iter().map(|value| written(value, is_spaced)).collect();
            format!("[{}]", list.join(comma))
        }
        Value::Object(object) => {
            let pairs = object
                .iter()
                .map(|(name, value)| format!("{}{colon}{}", key(name), written(value, is_spaced)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(comma))
        }
        other => other.to_string(),
    }
}

/// Returns the shape of a value: its lists, its objects, and how many keys these have.
fn shape(value: &Value) -> String {
    match value {
        Value::Array(list) => format!("[{}]", list.iter().map(shape).collect::<String>()),
        // Two keys may have the same mask.
        Value::Object(object) => {
            if object.keys().any(|key| key.contains("[redacted")) {
                "{?}".into()
            } else {
                format!("{{{}}}", object.values().map(shape).collect::<String>())
            }
        }
        _ => "v".into(),
    }
}

#[test]
fn a_line_of_json_is_json_after_masking() {
    let rounds = std::env::var("TRANSCRIPT_REDACT_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(30_000);
    let redactor = Redactor::new();
    let mut random = Random::new(3);
    let (mut masks, mut found_again) = (0, 0);
    for round in 0..rounds {
        let value = Value::Object(object(&mut random, 3));
        for is_spaced in [false, true] {
            let line = written(&value, is_spaced);
            let masked = redactor.redact_line(&line);
            masks += masked.matches("[redacted").count();
            let again: Value = serde_json::from_str(&masked)
                .unwrap_or_else(|error| panic!("round {round}: {error}\n{line}\n{masked}"));
            let (before, after) = (shape(&value), shape(&again));
            let same = after.split("{?}").all(|part| before.contains(part));
            assert!(same, "round {round}: {before} {after}\n{line}\n{masked}");
            for key in KEYS {
                let count = |line: &str| line.matches(&format!("\"{key}\":")).count();
                assert_eq!(
                    count(&line),
                    count(&masked),
                    "round {round}:\n{line}\n{masked}"
                );
            }
            // A mask can remove a text that hid another secret, but seldom does.
            found_again += usize::from(!redactor.find(masked.as_bytes()).is_empty());
        }
    }
    assert!(masks > rounds / 2, "{masks}");
    assert!(found_again * 500 <= rounds, "{found_again}");
}

#[test]
fn a_key_that_is_cut_off_ends_with_its_text() {
    let line = format!(
        "{{\"content\":\"-----BEGIN RSA PRIVATE KEY-----\\n{LINE}\",\"tool_use_id\":\"toolu_01AbCdEfGhIjKlMnOpQr1234\",\"uuid\":\"0a1b2c3d\"}}"
    );
    let masked = "{\"content\":\"[redacted: private key]\",\"tool_use_id\":\"toolu_01AbCdEfGhIjKlMnOpQr1234\",\"uuid\":\"0a1b2c3d\"}";
    assert_eq!(Redactor::new().redact_line(&line), masked);
    // The strings of a list may all belong to one.
    let line = format!(
        "{{\"lines\":[\"+-----BEGIN RSA PRIVATE KEY-----\",\"+{LINE}\",\"+{LINE}\",\"+x7Kq2p==\"],\"oldStart\":1}}"
    );
    let masked = Redactor::new().redact_line(&line);
    assert!(
        !masked.contains("x7Kq") && masked.ends_with("],\"oldStart\":1}"),
        "{masked}"
    );
}

#[test]
fn mention_of_a_key_is_not_a_key() {
    for text in [
        "if \"-----BEGIN RSA PRIVATE KEY-----\" in text:\n    return getRSAPrivateKey2FromPEM(key)",
        "It starts with -----BEGIN RSA PRIVATE KEY----- as I said. I changed src/UserProfile2CardView.tsx then.",
        "pair(line_ending, tag(\"-----END RSA PRIVATE KEY-----\"))",
        "key=\"-----BEGIN PRIVATE KEY-----\\nXXXX\\n-----END PRIVATE KEY-----\"",
    ] {
        let line = serde_json::json!({"content": text}).to_string();
        assert_eq!(Redactor::new().redact_line(&line), line);
    }
}

#[test]
fn a_command_that_is_cut_in_quotes_ends_with_its_text() {
    for command in [
        "sudo -S ls <<< '",
        "sqlcmd -U sa -P'",
        "curl -u 'bob:",
        "sshpass -p '",
    ] {
        let line = format!("{{\"content\":[\"{command}Zx81k3Lm\"],\"uuid\":\"b\"}}");
        let masked = format!("{{\"content\":[\"{command}[redacted: password]\"],\"uuid\":\"b\"}}");
        assert_eq!(Redactor::new().redact_line(&line), masked);
    }
}
