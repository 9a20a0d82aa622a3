//! Lines of commands and of files whose words say which one of them is a secret. A rule is one row.
//!
//! A row is a line with one blank between its words. `_` stands for any word, or for a part of one; `...` for words up
//! to the next one of the row; `V` for a secret; `R` for a secret that has to look random. The words before the first of
//! these are the text by which a row is searched. Matching goes forwards and never tries again.

use std::ops::Range;

use crate::commands::accepted;
use crate::random::{is_cased, is_mixed, looks_random};
use crate::view::View;

pub(crate) const LINE_RULES: &[&str] = &[
    // Users of systems.
    "net user _ V",
    "net use ... /user:_ V",
    "cmdkey ... /pass:V",
    "openssl passwd -_ V",
    "usermod ... -p V",
    "smbpasswd ... -w V",
    // Keys and containers.
    "openssl enc ... -K V",
    "openssl enc ... -k V",
    "-pass pass:V",
    "-passin pass:V",
    "-passout pass:V",
    "ssh-keygen ... -P V",
    "ssh-keygen ... -N V",
    "cryptsetup ... --key-data V",
    // Stores of secrets.
    "vault login V",
    "vault login token=V",
    "vault kv put ... value=V",
    "vault write ... value=V",
    "az keyvault secret set ... --value V",
    "az webapp config appsettings set ... --settings _=V",
    "aws ssm put-parameter ... --value V",
    "aws secretsmanager create-secret ... --secret-string V",
    "aws secretsmanager put-secret-value ... --secret-string V",
    "--from-literal=_=V",
    "--from-literal _=V",
    "op item create ... password=V",
    "pass insert -e _ <<< V",
    "ansible-vault encrypt_string V",
    "pulumi config set --secret _ V",
    "firebase functions:config:set _=V",
    "doppler secrets set _=V",
    "flyctl secrets set _=V",
    "fly secrets set _=V",
    "heroku config:set _KEY=V",
    "CREDENTIALS _ _ V V",
    "FULL R",
    // Registries of packages.
    "composer config ... http-basic._ _ V",
    "composer config ... github-oauth._ V",
    "poetry config ... http-basic._ _ V",
    "poetry config ... pypi-token._ V",
    "poetry publish ... -p V",
    "twine upload ... -p V",
    "gem push ... --key V",
    "cargo login V",
    "cargo login ... -- V",
    "npm token revoke V",
    "nuget push ... -k V",
    "nuget push ... --api-key V",
    "dotnet nuget push ... -k V",
    "conan user ... -p V",
    "snyk auth V",
    "ngrok authtoken V",
    "ngrok config add-authtoken V",
    "sentry-cli login --auth-token V",
    "mc alias set _ _ _ V",
    "mc config host add _ _ _ V",
    "rclone obscure V",
    "tailscale up ... --authkey V",
    "cloudflared service install V",
    "cloudflared tunnel run --token V",
    // Databases and services.
    "sqlplus _/V@_",
    "sqlplus _/V",
    "CONNECT _/V@_",
    "jdbc:oracle:thin:_/V@_",
    "redis-cli ... AUTH V",
    "> AUTH V",
    "> AUTH _ V",
    "ACL SETUSER _ ... >V",
    "user _ on ... >V",
    "lftp ... -u _,V",
    "mosquitto_passwd ... -b _ _ V",
    "vault operator unseal V",
    "nmcli ... password V",
    "wpa_passphrase _ V",
    "Key Content : V",
    "New value: V",
    "PASSWORD _ = V",
    "bundle config _ _:V",
    "bundle config set _ _:V",
    "security add-generic-password ... -w V",
    "createUser _ SHA V",
    "createUser _ MD5 V",
    "createUser _ ... AES V",
    "createUser _ ... DES V",
    "snmpwalk ... -A V",
    "snmpwalk ... -X V",
    "stats auth _:V",
    "insecure-password V",
    ": PSK V",
    ": EAP V",
    ": XAUTH V",
    "]:587 _:V",
    "]:465 _:V",
    "]:25 _:V",
    "{SSHA}V",
    "{SSHA256}V",
    "{SSHA512}V",
    "{SMD5}V",
    "{CRYPT}V",
];

/// The maximum length of a line, in bytes.
const MAX_LINE_LEN: usize = 600;

/// A word of a row.
#[derive(Debug)]
enum RuleWord {
    /// Words up to one that is like the next word of the row.
    Any,
    Like(Vec<Part>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Text(&'static str),
    Blank,
    Secret,
    Random,
}

/// A row.
#[derive(Debug)]
pub(crate) struct LineRule {
    anchor: &'static str,
    /// Whether the anchor ends with a word.
    is_whole: bool,
    words: Vec<RuleWord>,
}

impl LineRule {
    pub(crate) fn parse(row: &'static str) -> Self {
        let is_sign = |word: &'static str| {
            word == "..." || !parts(word).iter().all(|part| matches!(part, Part::Text(_)))
        };
        let mut anchor_len = 0;
        for word in row.split(' ') {
            if is_sign(word) {
                // The text before the sign in its word belongs to the anchor.
                if let Some(Part::Text(text)) = parts(word).first()
                    && word != "..."
                {
                    anchor_len += text.len();
                }
                break;
            }
            anchor_len += word.len() + 1;
        }
        // Any blank may stand behind its last word.
        let anchor = row[..anchor_len].trim_end();
        let is_whole = anchor.len() < anchor_len;
        let words = row[anchor_len..].split(' ').map(|word| match word {
            "..." => RuleWord::Any,
            _ => RuleWord::Like(parts(word)),
        });
        Self {
            anchor,
            is_whole,
            words: words.collect(),
        }
    }

    /// The text by which the row is searched.
    pub(crate) fn anchor(&self) -> &'static str {
        self.anchor
    }

    /// Returns the secrets in the line whose anchor ends at `at`.
    pub(crate) fn find(&self, view: &View, at: usize) -> Vec<Range<usize>> {
        let text = view.text();
        let end = text.len().min(at + MAX_LINE_LEN);
        if self.is_whole && !text.get(at).is_some_and(u8::is_ascii_whitespace) {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut at = at;
        let mut is_any = false;
        for word in &self.words {
            let RuleWord::Like(parts) = word else {
                is_any = true;
                continue;
            };
            loop {
                let Some((here, next)) = shell_word(view, at, end) else {
                    return Vec::new();
                };
                at = next;
                match matched(text, &here, parts) {
                    Some(secrets) => {
                        found.extend(secrets);
                        break;
                    }
                    None if is_any => {}
                    None => return Vec::new(),
                }
            }
            is_any = false;
        }
        found
    }
}

/// Returns the parts of a word of a row.
fn parts(word: &'static str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut start = 0;
    let bytes = word.as_bytes();
    let is_letter = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(u8::is_ascii_alphanumeric)
    };
    for (at, byte) in bytes.iter().enumerate() {
        let is_standalone = !is_letter(at.checked_sub(1)) && !is_letter(Some(at + 1));
        let part = match byte {
            b'_' if is_standalone => Part::Blank,
            b'V' if is_standalone => Part::Secret,
            b'R' if is_standalone => Part::Random,
            _ => continue,
        };
        if start < at {
            parts.push(Part::Text(&word[start..at]));
        }
        parts.push(part);
        start = at + 1;
    }
    if start < word.len() {
        parts.push(Part::Text(&word[start..]));
    }
    parts
}

/// Returns the secrets in a word of the text if it is like one of a row.
fn matched(text: &[u8], word: &Range<usize>, parts: &[Part]) -> Option<Vec<Range<usize>>> {
    let mut found = Vec::new();
    let mut at = word.start;
    let mut parts = parts.iter().peekable();
    while let Some(part) = parts.next() {
        if let Part::Text(with) = part {
            let rest = &text[at..word.end];
            // `-p` and `-P` are two options.
            let is_it = if with.starts_with('-') {
                rest.starts_with(with.as_bytes())
            } else {
                rest.len() >= with.len() && rest[..with.len()].eq_ignore_ascii_case(with.as_bytes())
            };
            if !is_it {
                return None;
            }
            at += with.len();
            continue;
        }
        let end = match parts.peek() {
            Some(Part::Text(sign)) => {
                at + memchr::memmem::find(&text[at..word.end], sign.as_bytes())?
            }
            _ => word.end,
        };
        let run = at..end;
        match part {
            Part::Blank if run.is_empty() => return None,
            Part::Secret => found.push(secret(text, run)?),
            Part::Random if !looks_random(&text[run.clone()]) => return None,
            Part::Random => found.push(run),
            _ => {}
        }
        at = end;
    }
    (at == word.end).then_some(found)
}

/// Returns a range if its text can be a password, and is not a word of a sentence.
fn secret(text: &[u8], range: Range<usize>) -> Option<Range<usize>> {
    let value = &text[range.clone()];
    let is_word = !is_mixed(value) && !is_cased(value);
    accepted(text, range, 3).filter(|_| !is_word)
}

/// Returns the next word of a command behind `at`, without its quotes, and where it ends with them.
fn shell_word(view: &View, at: usize, end: usize) -> Option<(Range<usize>, usize)> {
    let text = view.text();
    let mut at = at;
    // An escaped end of a line is a blank.
    while at < end {
        let is_blank = matches!(text[at], b' ' | b'\t' | b'\r');
        let is_escaped = text[at] == b'\\' && text[at + 1..end].first() == Some(&b'\n');
        match (is_blank, is_escaped) {
            (true, _) => at += 1,
            (_, true) => at += 2,
            _ => break,
        }
    }
    let quote = text
        .get(at)
        .copied()
        .filter(|byte| matches!(byte, b'"' | b'\''));
    if view.is_outer_quote(at) {
        return None;
    }
    let start = at + usize::from(quote.is_some());
    let rest = text.get(start..end)?;
    let len = match quote {
        Some(quote) => rest
            .iter()
            .position(|byte| *byte == quote || *byte == b'\n')?,
        None => {
            let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`".contains(byte);
            let len = rest.iter().position(is_end).unwrap_or(rest.len());
            let word = &rest[..len];
            len - word
                .iter()
                .rev()
                .take_while(|byte| b";,)".contains(byte))
                .count()
        }
    };
    let end = start + len;
    (len > 0).then_some((start..end, end + usize::from(quote.is_some())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let mut view = View::of_text();
        view.decode(text.as_bytes());
        let mut found = Vec::new();
        for row in LINE_RULES {
            let line = LineRule::parse(row);
            let Some(at) = text.find(line.anchor()) else {
                continue;
            };
            for range in line.find(&view, at + line.anchor().len()) {
                found.push(String::from_utf8(view.text()[range].to_vec()).unwrap());
            }
        }
        found
    }

    #[test]
    fn the_word_of_a_row_that_is_a_secret_is_found() {
        for (text, secrets) in [
            ("net user bob Zx81k3Lm /add", "Zx81k3Lm"),
            ("vault login Zx81k3Lm", "Zx81k3Lm"),
            ("mc alias set a http://b c 'Zx8 1k3Lm'", "Zx8 1k3Lm"),
            ("CONNECT scott/Zx81k3Lm@orcl", "Zx81k3Lm"),
            (
                "createUser bob SHA \"Zx81k3Lm\" AES \"Yx81k3Lm\"",
                "Zx81k3Lm Yx81k3Lm",
            ),
            ("ssh-keygen -p -P Zx81k3Lm -f k", "Zx81k3Lm"),
            ("openssl enc -aes-256-cbc -K Zx81k3Lm -in x", "Zx81k3Lm"),
            ("user default on >Zx81k3Lm ~* +@all", "Zx81k3Lm"),
            (
                "aws ssm put-parameter --name a \\\n  --value 'Zx81k3Lm'",
                "Zx81k3Lm",
            ),
            (
                "CREDENTIALS\tASIA\t2026\tZx81k3Lm\tYx81k3Lm",
                "Zx81k3Lm Yx81k3Lm",
            ),
            ("lftp -u bob,Zx81k3Lm h", "Zx81k3Lm"),
            ("{SSHA}Zx81k3Lm", "Zx81k3Lm"),
        ] {
            assert_eq!(found(text).join(" "), secrets, "{text}");
        }
    }

    #[test]
    fn placeholders_and_options_are_not_secrets() {
        for text in [
            "net user bob $PASSWORD",
            "vault login -method=github",
            "vault login <token>",
            "net user bob\nZx81k3Lm",
            "mc alias set a http://b c",
            "FULL words are not secrets",
            "run vault login first",
        ] {
            assert_eq!(found(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn each_row_has_an_anchor_and_a_secret() {
        for row in LINE_RULES {
            let line = LineRule::parse(row);
            let has_secret = |word: &RuleWord| match word {
                RuleWord::Any => false,
                RuleWord::Like(parts) => {
                    parts.contains(&Part::Secret) || parts.contains(&Part::Random)
                }
            };
            assert!(line.anchor().len() >= 4, "{row}");
            assert!(line.words.iter().any(has_secret), "{row}");
        }
    }
}
