//! Passwords on command lines: `mysql -pV`, `curl -u user:V`, `sshpass -p V`, `echo V | sudo -S`.

use std::ops::Range;

use crate::class::ALNUM;
use crate::random::{is_mixed, looks_random};
use crate::value::stands_for_one;
use crate::view::View;

/// Calls whose last argument is a password.
pub(crate) const CALLS: [&str; 13] = [
    "mysql_connect(",
    "DirectoryEntry(",
    "mysqli(",
    "mysqli_connect(",
    "PDO(",
    "getConnection(",
    "auth=(",
    "HTTPBasicAuth(",
    "SetBasicAuth(",
    "NetworkCredential(",
    ".login(",
    "WiFi.begin(",
    "BasicAuth(",
];

/// The options by which text is searched.
pub(crate) const OPTIONS: [&str; 34] = [
    " -b ",
    " -k ",
    " -N ",
    "| chpasswd",
    "| sudo chpasswd",
    "passwd --stdin",
    "| passwd ",
    "| sudo passwd ",
    "sudo -k -S",
    "sudo -kS",
    "secret set",
    "secret put",
    "secrets create",
    "secrets versions add",
    "env add",
    "--with-token",
    "add_user ",
    "change_password ",
    "htpasswd -",
    " -p",
    " -u",
    " --user",
    " -P",
    " -a ",
    " -w ",
    " -U ",
    " -pw ",
    " /p:",
    "--password-stdin",
    "sudo -S",
    "ConvertTo-SecureString",
    "IDENTIFIED BY",
    "send \"",
    "send -- \"",
];

/// Returns the password in a call whose arguments start at `at`: the third text if there are three, or else the second.
pub(crate) fn argument_of_call(view: &View, at: usize) -> Option<Range<usize>> {
    const MAX_CALL: usize = 400;
    let text = view.text();
    let rest = &text[at..text.len().min(at + MAX_CALL)];
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut place = 0;
    while let Some(open) = rest[place..]
        .iter()
        .position(|byte| b"\"')\n;".contains(byte))
    {
        let open = place + open;
        let mark = rest[open];
        if !matches!(mark, b'"' | b'\'') || view.is_outer_quote(at + open) {
            break;
        }
        let len = rest[open + 1..]
            .iter()
            .position(|byte| *byte == mark || *byte == b'\n')?;
        found.push(at + open + 1..at + open + 1 + len);
        place = open + len + 2;
    }
    let only = found
        .first()
        .filter(|only| looks_random(&text[(*only).clone()]));
    let password = found.get(2).or(found.get(1)).or(only)?.clone();
    let value = &text[password.clone()];
    let is_address = value.contains(&b'@') || memchr::memmem::find(value, b"://").is_some();
    let is_word = !value.iter().all(u8::is_ascii_graphic);
    accepted(text, password, 6).filter(|_| !is_word && !is_address)
}

/// How far before an option its command is, in bytes.
const MAX_BEFORE: usize = 400;

/// Returns the password that belongs to an option at `at`.
pub(crate) fn password(view: &View, option: &str, at: usize) -> Option<Range<usize>> {
    let text = view.text();
    let end = at + option.len();
    let before = &text[at.saturating_sub(MAX_BEFORE)..at];
    // The command is behind the last end of one; an escaped end of a line is none.
    let start = before.windows(2).rposition(|pair| {
        matches!(pair, b"; " | b"&&" | b"||" | b"$(")
            || pair[1] == b'\n' && pair[0] != b'\\' && pair[0] != b' '
    });
    let before = &before[start.map_or(0, |start| start + 1)..];
    let runs = |commands: &[&str]| commands.iter().any(|command| has_command(before, command));
    match option {
        " -u" | " --user" | " -a " => {
            let web = [
                "curl", "http", "https", "xh", "wget", "lftp", "jf", "ab", "gcurl", "grpcurl",
            ];
            if option == " -a " && runs(&["redis-cli", "keydb-cli", "valkey-cli"]) {
                return argument(text, end, 3);
            }
            if !runs(&web)
                || option != " -a "
                    && !matches!(text.get(end), Some(b' ' | b'=' | b'"' | b'\''))
                    && text.get(end).is_none_or(|byte| !ALNUM.has(*byte))
            {
                return None;
            }
            let value = word(text, end)?;
            let user = &text[value.clone()];
            let colon = memchr::memchr(b':', user)?;
            let password = colon + 1..user.len();
            // At the end of a line, the password may be on the next one.
            let is_cut = text.get(value.end) == Some(&b'\n');
            if password.is_empty() {
                return (!is_cut && looks_random(&user[..colon]))
                    .then(|| value.start..value.start + colon);
            }
            accepted(text, value.start + password.start..value.end, 3)
                .filter(|range| text[range.clone()] != user[..colon])
        }
        " -p" => {
            let is_attached = text
                .get(end)
                .is_some_and(|byte| !byte.is_ascii_whitespace() && *byte != b'=');
            let attached = [
                "mysql",
                "mysqldump",
                "mysqladmin",
                "mysqlimport",
                "mysqlsh",
                "mariadb",
                "mariadb-dump",
                "mycli",
                "7z",
                "rar",
                "unrar",
            ];
            let separate = [
                "sshpass",
                "psexec",
                "psexec64",
                "mongo",
                "mongosh",
                "mongodump",
                "mongorestore",
                "mongoexport",
                "docker login",
                "podman login",
                "helm registry login",
                "az login",
                "oc login",
                "cf login",
                "influx",
                "cqlsh",
                "kinit",
                "smbmap",
                "crackmapexec",
                "nxc",
                "evil-winrm",
                "rabbitmqadmin",
                "ldapadd",
                "mosquitto_pub",
                "nuget",
                "registry login",
            ];
            match is_attached {
                true if runs(&attached) || runs(&["sshpass"]) => argument(text, end, 3),
                false if runs(&separate) => argument(text, end, 3),
                _ => None,
            }
        }
        " -P" => runs(&[
            "sqlcmd",
            "bcp",
            "unzip",
            "zip",
            "isql",
            "mosquitto_pub",
            "mosquitto_sub",
            "ipmitool",
        ])
        .then(|| argument(text, end, 3))?,
        " -w " => runs(&[
            "ldapsearch",
            "ldapmodify",
            "ldapadd",
            "ldapwhoami",
            "ldapdelete",
            "ldappasswd",
            "rpcclient",
        ])
        .then(|| argument(text, end, 3))?,
        " -pw " => runs(&["plink", "pscp", "psftp", "putty"]).then(|| argument(text, end, 3))?,
        " /p:" => {
            runs(&["xfreerdp", "wfreerdp", "runas", "schtasks"]).then(|| argument(text, end, 3))?
        }
        " -U " => {
            let value = word(text, end)
                .filter(|_| runs(&["smbclient", "net", "rpcclient", "smbget", "winexe"]))?;
            let percent = memchr::memchr(b'%', &text[value.clone()])?;
            accepted(text, value.start + percent + 1..value.end, 3)
        }
        " -b " => {
            let value = word(text, end).filter(|_| runs(&["curl"]))?;
            memchr::memchr(b'=', &text[value.clone()])?;
            accepted(text, value, 8)
        }
        " -k " => {
            let range = argument(text, end, 3).filter(|_| runs(&["openssl"]))?;
            let rest = text[range.clone()].strip_prefix(b"pass:");
            Some(rest.map_or(range.start, |rest| range.end - rest.len())..range.end)
        }
        " -N " => argument(text, end, 3).filter(|_| runs(&["ssh-keygen"])),
        "| chpasswd" | "| sudo chpasswd" => {
            let value = piped(view, at)?;
            let colon = memchr::memchr(b':', &text[value.clone()])?;
            accepted(text, value.start + colon + 1..value.end, 3)
        }
        "add_user " | "change_password " => {
            let user = word(text, end).filter(|_| runs(&["rabbitmqctl"]))?;
            argument(text, user.end, 3)
        }
        "htpasswd -" => {
            let options = text[end..]
                .iter()
                .take_while(|byte| byte.is_ascii_alphabetic());
            let options = &text[end..end + options.count()];
            let mut last = end + options.len();
            // The file, which `-n` does not have, and the user.
            for _ in 0..if options.contains(&b'n') { 1 } else { 2 } {
                last = word(text, last)?.end;
            }
            argument(text, last, 3).filter(|_| options.contains(&b'b'))
        }
        "--password-stdin"
        | "sudo -S"
        | "sudo -k -S"
        | "sudo -kS"
        | "passwd --stdin"
        | "| passwd "
        | "| sudo passwd "
        | "secret set"
        | "secret put"
        | "secrets create"
        | "secrets versions add"
        | "env add"
        | "--with-token" => accepted(text, piped(view, at)?, 3),
        "ConvertTo-SecureString" => {
            let rest = &text[end..text.len().min(end + 80)];
            let line = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
            let open = line.iter().position(|byte| matches!(byte, b'"' | b'\''))?;
            accepted(text, word(text, end + open)?, 3)
        }
        // The answer of a script of `expect`.
        "send \"" | "send -- \"" => {
            let asked = &text[at.saturating_sub(MAX_BEFORE)..at];
            let is_asked = memchr::memmem::find(asked, b"assword").is_some();
            let value = word(text, end - 1).filter(|_| is_asked)?;
            accepted(text, value, 3)
        }
        "IDENTIFIED BY" => {
            let value = word(text, end)?;
            let quote = text[..value.start].last();
            let is_quoted = quote.is_some_and(|quote| b"\"'".contains(quote));
            accepted(text, value, 3).filter(|value| is_quoted || is_mixed(&text[value.clone()]))
        }
        _ => None,
    }
}

/// Returns what `echo` or `printf` write into the command around `at`, or what is `<<< value` behind it.
fn piped(view: &View, at: usize) -> Option<Range<usize>> {
    const WRITERS: [&str; 8] = [
        "echo -n ",
        "echo -e ",
        "echo -ne ",
        "echo -en ",
        "echo ",
        "printf '%s' ",
        "printf %s ",
        "printf ",
    ];
    let text = view.text();
    let rest = &text[at..text.len().min(at + MAX_BEFORE)];
    let rest = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
    if let Some(here) = memchr::memmem::find(rest, b"<<<") {
        return word(text, at + here + 3);
    }
    let from = at.saturating_sub(MAX_BEFORE);
    let pipe = from + memchr::memrchr(b'|', &text[from..(at + 1).min(text.len())])?;
    let before = &text[from..pipe];
    let end_of =
        |writer: &&str| Some(memchr::memmem::rfind(before, writer.as_bytes())? + writer.len());
    let start = from + WRITERS.iter().filter_map(end_of).max()?;
    let mut value = word(text, start)?;
    // A text of several lines, such as a password that is told twice.
    if let Some(quote) = text[..value.start]
        .last()
        .filter(|byte| b"\"'".contains(byte))
    {
        value.end = memchr::memchr(*quote, &text[value.start..pipe])
            .map_or(value.end, |len| value.start + len);
    }
    let is_next = text[value.end.min(pipe)..pipe]
        .iter()
        .all(|byte| b" \t\n\"'\\".contains(byte));
    if !is_next {
        return None;
    }
    // The line feed of `printf`.
    let value = value.start..value.end.min(pipe);
    let len = text[value.clone()]
        .strip_suffix(b"\n")
        .map_or(value.len(), <[u8]>::len);
    Some(value.start..value.start + len)
}

/// Returns whether a command stands in a text.
fn has_command(text: &[u8], command: &str) -> bool {
    let starts = text.windows(command.len()).enumerate();
    let mut places = starts.filter(|(_, here)| here.eq_ignore_ascii_case(command.as_bytes()));
    places.any(|(at, _)| {
        let before = at.checked_sub(1).map(|before| text[before]);
        let after = text.get(at + command.len());
        let is_word = |byte: u8| ALNUM.has(byte) || byte == b'_';
        // A hyphen is the mark of a diff, or part of another name.
        let further = at.checked_sub(2).map(|before| text[before]);
        let is_mark =
            before == Some(b'-') && further.is_none_or(|byte| !is_word(byte) && byte != b'-');
        (is_mark || before.is_none_or(|byte| !is_word(byte) && byte != b'-'))
            && after.is_none_or(|byte| byte.is_ascii_whitespace() || *byte == b'.' || *byte == b'"')
    })
}

/// Returns the argument at `at`, if it is a password.
fn argument(text: &[u8], at: usize, min: usize) -> Option<Range<usize>> {
    accepted(text, word(text, at)?, min)
}

/// Returns the word at `at`, behind blanks and `=`, without its quotes.
fn word(text: &[u8], at: usize) -> Option<Range<usize>> {
    const MAX_WORD: usize = 4 << 10;
    let blank = text
        .get(at..)?
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'=' | b'\t'))
        .count();
    let start = at + blank;
    let quote = text
        .get(start)
        .copied()
        .filter(|byte| matches!(byte, b'"' | b'\''));
    let start = start + usize::from(quote.is_some());
    let rest = &text[start.min(text.len())..text.len().min(start + MAX_WORD)];
    let is_end = |byte: &u8| match quote {
        Some(quote) => *byte == quote || *byte == b'\n',
        None => byte.is_ascii_whitespace() || b"\"'`;|<>".contains(byte),
    };
    let len = rest.iter().position(is_end).unwrap_or(rest.len());
    (len > 0).then_some(start..start + len)
}

/// Returns a range if what is there can be a password.
pub(crate) fn accepted(text: &[u8], range: Range<usize>, min: usize) -> Option<Range<usize>> {
    let value = &text[range.clone()];
    let is_variable =
        value.first().is_some_and(|byte| b"$<{[-%".contains(byte)) && !looks_random(value);
    let is_port = value
        .iter()
        .all(|byte| byte.is_ascii_digit() || b":/.".contains(byte))
        && value.len() < 6;
    let is_upper = value
        .iter()
        .all(|byte| byte.is_ascii_uppercase() || *byte == b'_');
    (value.len() >= min && !is_variable && !is_port && !is_upper && !stands_for_one(value))
        .then_some(range)
}
