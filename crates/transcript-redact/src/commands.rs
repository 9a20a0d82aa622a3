//! Passwords on command lines: `mysql -pV`, `curl -u user:V`, `sshpass -p V`, `echo V | sudo -S`.

use std::ops::Range;

use crate::class::ALNUM;
use crate::random::{is_mixed, looks_random};
use crate::value::stands_for_one;
use crate::view::View;

/// Calls one of whose arguments is a secret, and the number of that argument, from 0.
pub(crate) const SECRET_CALLS: [(&str, usize); 30] = [
    ("mysqli(", 2),
    ("mysqli_connect(", 2),
    ("mysql_connect(", 2),
    ("PDO(", 2),
    ("DBI->connect(", 2),
    ("getConnection(", 2),
    ("DirectoryEntry(", 2),
    ("create_user(", 2),
    ("createUser(", 2),
    ("PlainAuth(", 2),
    ("auth=(", 1),
    ("basic_auth(", 1),
    ("basicAuth(", 1),
    ("BasicAuth(", 1),
    ("NetworkCredential(", 1),
    (".login(", 1),
    ("client.login(", 0),
    ("WiFi.begin(", 1),
    ("username_pw_set(", 1),
    ("CURLOPT_USERPWD", 1),
    ("jwt.sign(", 1),
    ("jwt.verify(", 1),
    ("jwt.encode(", 1),
    ("jwt.decode(", 1),
    ("createHmac(", 1),
    ("createSecretKey(", 0),
    ("hmac.new(", 0),
    ("Fernet(", 0),
    ("AES.encrypt(", 1),
    ("AES.decrypt(", 1),
];

/// The options by which text is searched.
pub(crate) const PASSWORD_OPTIONS: [&str; 34] = [
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

/// Returns whether a text is one of the calls: the search does not regard the case of letters, and code does.
pub(crate) fn is_call(text: &[u8]) -> bool {
    SECRET_CALLS.iter().any(|(call, _)| call.as_bytes() == text)
}

/// Returns the secret in a call whose arguments start at `at`: the one with this number, if it is a text.
pub(crate) fn argument_of_call(view: &View, at: usize, number: usize) -> Option<Range<usize>> {
    const MAX_CALL_LEN: usize = 400;
    let text = view.text();
    let end = text.len().min(at + MAX_CALL_LEN);
    let mut place = at;
    let mut arguments = 0;
    let mut depth = 0_usize;
    while place < end {
        let byte = text[place];
        match byte {
            b'"' | b'\'' | b'`' if view.is_outer_quote(place) => return None,
            b'"' | b'\'' | b'`' => {
                let start = place + 1;
                let rest = &text[start..end];
                let len = rest
                    .iter()
                    .position(|other| *other == byte || *other == b'\n')?;
                if arguments == number && depth == 0 {
                    return argument_text(view, start..start + len);
                }
                place = start + len;
            }
            b',' if depth == 0 => arguments += 1,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            b'\n' | b';' if arguments > number => return None,
            _ => {}
        }
        place += 1;
    }
    None
}

/// Returns an argument if it can be a secret, and is neither an address nor a sentence.
fn argument_text(view: &View, argument: Range<usize>) -> Option<Range<usize>> {
    let text = view.text();
    let value = &text[argument.clone()];
    let is_address = value.contains(&b'@') || memchr::memmem::find(value, b"://").is_some();
    let is_word = !value.iter().all(u8::is_ascii_graphic);
    // `user:password`.
    let colon = memchr::memchr(b':', value).filter(|_| !is_address);
    let start = argument.start + colon.map_or(0, |colon| colon + 1);
    accepted(text, start..argument.end, 6).filter(|_| !is_word && !is_address)
}

/// The maximum distance of a command from its option, in bytes.
const MAX_COMMAND_DISTANCE: usize = 400;

/// Returns the password that belongs to an option at `at`.
pub(crate) fn password(view: &View, option: &str, at: usize) -> Option<Range<usize>> {
    let text = view.text();
    let end = at + option.len();
    let before = &text[at.saturating_sub(MAX_COMMAND_DISTANCE)..at];
    // The command is behind the last end of one; an escaped end of a line is none.
    let start = before.windows(2).rposition(|pair| {
        matches!(pair, b"; " | b"&&" | b"||" | b"$(")
            || pair[1] == b'\n' && !b"\\ \r".contains(&pair[0])
    });
    let before = &before[start.map_or(0, |start| start + 1)..];
    let lower = before.to_ascii_lowercase();
    let runs = |commands: &[&str]| commands.iter().any(|command| has_command(&lower, command));
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
            // `curl -b FILE` names a file, `curl -b name=value` is a cookie.
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
            let asked = &text[at.saturating_sub(MAX_COMMAND_DISTANCE)..at];
            // Most texts that such a script sends are commands.
            let is_asked = memchr::memmem::find(asked, b"assword").is_some();
            let value = word(text, end - 1).filter(|_| is_asked)?;
            accepted(text, value, 3)
        }
        "IDENTIFIED BY" => {
            let value = word(text, end)?;
            let quote = text[..value.start].last();
            let is_quoted = quote.is_some_and(|quote| b"\"'".contains(quote));
            // Things are identified by names in prose, too.
            let upper = before.to_ascii_uppercase();
            let is_statement = ["USER", "ROLE", "GRANT", "LINK", "SET PASSWORD"]
                .iter()
                .any(|word| memchr::memmem::find(&upper, word.as_bytes()).is_some());
            accepted(text, value, 3)
                .filter(|value| is_statement && (is_quoted || is_mixed(&text[value.clone()])))
        }
        _ => None,
    }
}

/// Returns the text that `echo` or `printf` write into the command around `at`, or the here-string `<<< value` after it.
fn piped(view: &View, at: usize) -> Option<Range<usize>> {
    const ECHO_COMMANDS: [&str; 8] = [
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
    let rest = &text[at..text.len().min(at + MAX_COMMAND_DISTANCE)];
    // The here-string of another command on a later line is not its input.
    let rest = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
    if let Some(here) = memchr::memmem::find(rest, b"<<<") {
        return word(text, at + here + 3);
    }
    let from = at.saturating_sub(MAX_COMMAND_DISTANCE);
    let pipe = from + memchr::memrchr(b'|', &text[from..(at + 1).min(text.len())])?;
    let before = &text[from..pipe];
    let end_of =
        |writer: &&str| Some(memchr::memmem::rfind(before, writer.as_bytes())? + writer.len());
    let start = from + ECHO_COMMANDS.iter().filter_map(end_of).max()?;
    let mut value = word(text, start)?;
    // A text of several lines, such as a password and the same again.
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

/// Returns whether a command stands in a text in small letters.
fn has_command(text: &[u8], command: &str) -> bool {
    let mut places = memchr::memmem::find_iter(text, command);
    places.any(|at| {
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
    const MAX_WORD_LEN: usize = 4 << 10;
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
    let rest = &text[start.min(text.len())..text.len().min(start + MAX_WORD_LEN)];
    let is_end = |byte: &u8| match quote {
        Some(quote) => *byte == quote || *byte == b'\n',
        None => byte.is_ascii_whitespace() || b"\"'`;|<>".contains(byte),
    };
    let len = rest.iter().position(is_end).unwrap_or(rest.len());
    // Without a second quote, it ends where a text of JSON does.
    let is_json = |pair: &[u8]| pair[0] == b'"' && b",:]}".contains(&pair[1]);
    let len = match quote {
        Some(b'\'') => rest[..len].windows(2).position(is_json).unwrap_or(len),
        _ => len,
    };
    (len > 0).then_some(start..start + len)
}

/// Returns a range if its text can be a password.
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
