//! `transcript serve`: which requests are answered, and what is not changed or shown.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

#[cfg(feature = "import")]
use crate::agents_home;
use crate::command;

const ID: &str = "11111111-2222-4333-8444-555555555555";
#[cfg(unix)]
const INSIDE: &str = "66666666-2222-4333-8444-555555555555";
const TOKEN: &str = "a-token-of-this-test";

/// A server over a folder of projects; it is killed when it is dropped.
struct Server {
    folder: TempDir,
    child: Child,
    port: u16,
}

fn entry(number: u32, text: &str) -> String {
    let uuid = |number: u32| format!("{number:08x}-0000-4000-8000-000000000000");
    let parent = match number {
        1 => "null".to_owned(),
        number => format!("\"{}\"", uuid(number - 1)),
    };
    format!(
        "{{\"type\":\"user\",\"uuid\":\"{}\",\"parentUuid\":{parent},\"sessionId\":\"{ID}\",\"timestamp\":\"2026-03-04T05:00:00.000Z\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n",
        uuid(number)
    )
}

impl Server {
    fn start() -> Self {
        Self::start_with(&[])
    }

    fn start_with(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("projects/-work");
        fs::create_dir_all(&project).unwrap();
        fs::write(
            project.join(format!("{ID}.jsonl")),
            entry(1, "the first <b>prompt</b>"),
        )
        .unwrap();
        fs::write(
            folder.path().join("outside.jsonl"),
            entry(1, "not to be seen"),
        )
        .unwrap();
        #[cfg(unix)]
        {
            let outside = folder.path().join("outside.jsonl");
            std::os::unix::fs::symlink(
                outside,
                project.join("22222222-2222-4333-8444-555555555555.jsonl"),
            )
            .unwrap();
            // A project that is a link out of the folder of projects.
            let elsewhere = folder.path().join("elsewhere");
            fs::create_dir(&elsewhere).unwrap();
            let session = elsewhere.join("33333333-2222-4333-8444-555555555555.jsonl");
            fs::write(session, entry(1, "not to be seen")).unwrap();
            let project = folder.path().join("projects/-elsewhere");
            std::os::unix::fs::symlink(elsewhere, project).unwrap();
            // The folder of a session, and the results of a session, as such links.
            let results = folder.path().join("results/tool-results");
            fs::create_dir_all(&results).unwrap();
            fs::write(results.join("r.txt"), "not to be seen").unwrap();
            let agent = folder.path().join("results/subagents/agent-a1.jsonl");
            fs::create_dir_all(agent.parent().unwrap()).unwrap();
            fs::write(&agent, entry(1, "not to be seen")).unwrap();
            let meta = r#"{"description":"not to be seen"}"#;
            fs::write(agent.with_extension("meta.json"), meta).unwrap();
            let results = folder.path().join("results");
            let work = folder.path().join("projects/-work");
            std::os::unix::fs::symlink(&results, work.join(ID)).unwrap();
            let left = work.join("55555555-2222-4333-8444-555555555555");
            std::os::unix::fs::symlink(&results, left).unwrap();
            let own = work.join(format!("{INSIDE}.jsonl"));
            fs::write(&own, entry(1, "the other prompt")).unwrap();
            fs::create_dir(own.with_extension("")).unwrap();
            let link = own.with_extension("").join("tool-results");
            std::os::unix::fs::symlink(results.join("tool-results"), link).unwrap();
            // A link that stays in the folder of projects.
            let more = folder.path().join("projects/more/-inside");
            fs::create_dir_all(&more).unwrap();
            let session = more.join("44444444-2222-4333-8444-555555555555.jsonl");
            fs::write(session, entry(1, "of a link inside")).unwrap();
            let project = folder.path().join("projects/-inside");
            std::os::unix::fs::symlink(more, project).unwrap();
        }
        let mut command = command(&["serve", "--json", "--no-cache"]);
        command.args(options);
        command.arg("--root").arg(folder.path().join("projects"));
        Self::spawned(folder, command)
    }

    /// Starts a server of everything in a home folder.
    #[cfg(feature = "import")]
    fn of_home(folder: TempDir) -> Self {
        let mut command = command(&["serve", "--json", "--no-cache"]);
        command
            .env("HOME", folder.path())
            .env("XDG_DATA_HOME", folder.path().join("data"))
            .env("XDG_CACHE_HOME", folder.path().join("cache"))
            .env("TRANSCRIPT_CONFIG", folder.path().join("config.toml"))
            .env_remove("CLAUDE_CONFIG_DIR")
            .env_remove("TRANSCRIPT_ARCHIVE");
        Self::spawned(folder, command)
    }

    fn spawned(folder: TempDir, mut command: Command) -> Self {
        command
            .env("TRANSCRIPT_SERVE_TOKEN", TOKEN)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let url = said["url"].as_str().unwrap();
        let rest = url.strip_prefix("http://127.0.0.1:").unwrap();
        let (port, path) = rest.split_once('/').unwrap();
        assert_eq!(path, format!("{TOKEN}/"));
        let port = port.parse().unwrap();
        Self {
            folder,
            child,
            port,
        }
    }

    fn session(&self) -> std::path::PathBuf {
        self.folder
            .path()
            .join(format!("projects/-work/{ID}.jsonl"))
    }

    fn connect(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        let host = format!("127.0.0.1:{}", self.port);
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request.push_str(&format!("Host: {host}\r\n"));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// Returns status and whole answer.
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let mut answer = String::new();
        self.connect(method, path, headers)
            .read_to_string(&mut answer)
            .unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.ask("GET", &format!("/{TOKEN}/{path}"), &[])
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All files below a folder with their content.
fn files(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn sessions_of_several_roots_have_addresses_of_their_own_even_with_the_same_id() {
    let other = tempfile::tempdir().unwrap();
    let file = other.path().join(format!("-work/{ID}.jsonl"));
    fs::create_dir(file.parent().unwrap()).unwrap();
    fs::write(&file, entry(1, "the prompt elsewhere")).unwrap();
    let server = Server::start_with(&["--root", other.path().to_str().unwrap()]);
    let (_, list) = server.get("");
    assert!(list.contains("<th>Root</th>"), "{list}");
    for query in ["", "?q=prompt"] {
        let (_, page) = server.get(query);
        let links = page.split("href=\"s/").skip(1);
        let links = links.filter_map(|link| link.split('"').next());
        let mut links: Vec<&str> = links
            .filter(|link| link.ends_with(&format!("-work/{ID}/")))
            .collect();
        links.sort_unstable();
        links.dedup();
        assert_eq!(links.len(), 2, "{page}");
        let mut shown = Vec::new();
        for link in links {
            let (status, page) = server.get(&format!("s/{link}"));
            assert_eq!(status, 200, "{link}");
            let key = page.split("part?key=").nth(1).unwrap().split('"').next();
            let (status, part) = server.get(&format!("s/{link}part?key={}", key.unwrap()));
            assert_eq!(status, 200, "{link}");
            shown.push(part.contains("elsewhere"));
        }
        shown.sort_unstable();
        assert_eq!(shown, [false, true], "{query}");
    }
    let (_, usage) = server.get("usage");
    assert!(usage.contains("By root"), "{usage}");
}

#[test]
fn only_pages_of_the_server_that_know_the_token_are_answered() {
    let server = Server::start();
    let before = files(server.folder.path());
    let (status, list) = server.get("");
    assert_eq!(status, 200);
    assert!(
        list.contains("the first &lt;b&gt;prompt&lt;/b&gt;"),
        "{list}"
    );
    for header in [
        "cache-control: no-store",
        "content-security-policy: default-src 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "x-frame-options: SAMEORIGIN",
    ] {
        assert!(list.contains(header), "{header}");
    }
    assert!(!list.to_lowercase().contains("access-control-allow"));
    let (status, page) = server.get(&format!("s/-work/{ID}/"));
    assert_eq!(status, 200);
    let key = page
        .split("part?key=")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let (status, part) = server.get(&format!("s/-work/{ID}/part?key={key}"));
    assert_eq!(status, 200);
    assert!(
        part.contains("the first") && !part.contains("<b>prompt"),
        "{part}"
    );
    assert_eq!(server.get(&format!("s/-work/{ID}/part?key=1-9-9")).0, 410);
    // Without the token, or with another one, nothing is there.
    for path in [
        "/",
        "/x/",
        "/favicon.ico",
        &format!("/{}/", &TOKEN[1..]),
        &format!("/{TOKEN}x/"),
        &format!("/x/s/-work/{ID}/"),
    ] {
        let (status, answer) = server.ask("GET", path, &[]);
        assert_eq!(status, 404, "{path}");
        assert!(!answer.contains("prompt"), "{path}");
    }
    // Other names of this address, other sites, other methods.
    let port = server.port;
    let list = format!("/{TOKEN}/");
    let own = format!("http://127.0.0.1:{port}");
    for (name, value, expected) in [
        ("Host", "attacker.example", 421),
        ("Host", &*format!("attacker.example:{port}"), 421),
        ("Host", "127.0.0.1", 421),
        ("Host", &*format!("localhost:{port}"), 200),
        ("Origin", "https://attacker.example", 403),
        ("Origin", "null", 403),
        ("Origin", &*own, 200),
        ("Sec-Fetch-Site", "cross-site", 403),
        ("Sec-Fetch-Site", "same-site", 403),
        ("Sec-Fetch-Site", "same-origin", 200),
        ("Sec-Fetch-Site", "none", 200),
    ] {
        assert_eq!(
            server.ask("GET", &list, &[(name, value)]).0,
            expected,
            "{name}: {value}"
        );
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        assert_eq!(server.ask(method, &list, &[]).0, 405, "{method}");
    }
    // Twice, where one of them is right, and with the address in the first line.
    for name in ["Host", "Origin", "Sec-Fetch-Site"] {
        let value = match name {
            "Host" => format!("127.0.0.1:{port}"),
            "Origin" => own.clone(),
            _ => "none".to_owned(),
        };
        let others = [(name, &*value), (name, "attacker.example")];
        for headers in [others, [others[1], others[0]]] {
            let (status, answer) = server.ask("GET", &list, &headers);
            assert!(matches!(status, 400 | 403 | 421), "{name}: {status}");
            assert!(!answer.contains("prompt"), "{name}");
        }
    }
    let absolute = format!("http://attacker.example{list}");
    assert_eq!(server.ask("GET", &absolute, &[]).0, 421);
    // Nothing outside of the root, however it is asked for.
    let own = [format!("s/-work/{ID}/"), format!("s/-work/{ID}/beside")];
    let own = own.iter().map(String::as_str);
    for path in ["", "?q=seen", "?all", "usage"].into_iter().chain(own) {
        let (status, answer) = server.get(path);
        assert_eq!(status, 200, "{path}");
        assert!(!answer.contains("not to be seen"), "{path}");
        assert!(!answer.contains("33333333"), "{path}");
    }
    for path in [
        "s/-elsewhere/33333333-2222-4333-8444-555555555555/",
        "s/-elsewhere/33333333-2222-4333-8444-555555555555/events",
        "s/-elsewhere/33333333-2222-4333-8444-555555555555/beside",
        "s/-work/55555555-2222-4333-8444-555555555555/",
        &format!("s/-work/{ID}/a/a1/"),
        &format!("s/-work/{ID}/a/a1/events"),
        "s/-work/22222222-2222-4333-8444-555555555555/",
        "s/../outside/",
        "s/-work/..%2F..%2Foutside/",
        "s/%2e%2e/outside/",
        "s/-work/%2e%2e%2f%2e%2e%2foutside/",
        "s/-work/../../outside.jsonl",
        &format!("s/-work/{ID}/a/..%2F..%2Foutside/"),
        &format!("s/-work/{ID}/a/x/"),
        "s/-work/no-such-session/",
    ] {
        let (status, answer) = server.get(path);
        assert_eq!(status, 404, "{path}");
        assert!(!answer.contains("not to be seen"), "{path}");
    }
    assert_eq!(files(server.folder.path()), before, "nothing is written");
}

/// Returns the next event of a stream: its id and data.
fn next(reader: &mut BufReader<TcpStream>) -> (String, Value) {
    let (mut id, mut data) = (String::new(), Value::Null);
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "the stream ended");
        if let Some(text) = line.strip_prefix("id: ") {
            id = text.trim().to_owned();
        } else if let Some(text) = line.strip_prefix("data: ") {
            data = serde_json::from_str(text).unwrap();
        } else if line.trim().is_empty() && !data.is_null() {
            return (id, data);
        }
    }
}

#[test]
fn appends_are_sent_once_and_again_only_to_pages_that_lack_them() {
    let server = Server::start();
    let events = format!("/{TOKEN}/s/-work/{ID}/events");
    let append = |number: u32, text: &str| {
        let mut file = fs::OpenOptions::new()
            .append(true)
            .open(server.session())
            .unwrap();
        file.write_all(entry(number, text).as_bytes()).unwrap();
    };
    let html = |data: &Value| {
        data["parts"].as_array().unwrap().last().unwrap()["html"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let mut first = BufReader::new(server.connect("GET", &events, &[]));
    let (start, data) = next(&mut first);
    assert_eq!(data["keep"], 0);
    assert!(html(&data).contains("the first"));
    append(2, "the second");
    let (second, data) = next(&mut first);
    assert!(html(&data).contains("the second"));
    assert_ne!(start, second);
    // Half a line is not an entry yet.
    let line = entry(3, "the third");
    let (half, rest) = line.split_at(70);
    let write = |text: &str| {
        let mut file = fs::OpenOptions::new()
            .append(true)
            .open(server.session())
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    write(half);
    std::thread::sleep(Duration::from_millis(200));
    write(rest);
    let (third, data) = next(&mut first);
    assert!(html(&data).contains("the third"), "{data}");
    drop(first);
    // A page that connects again and has everything gets nothing until there is more.
    let mut again = BufReader::new(server.connect("GET", &events, &[("Last-Event-ID", &third)]));
    append(4, "the fourth");
    let (_, data) = next(&mut again);
    assert!(html(&data).contains("the fourth"));
    // One that has less gets what it lacks at once.
    let mut late = BufReader::new(server.connect("GET", &events, &[("Last-Event-ID", &start)]));
    let (_, data) = next(&mut late);
    let shown = html(&data);
    assert!(
        shown.contains("the second") && shown.contains("the fourth"),
        "{shown}"
    );
    // The file is replaced by a shorter one.
    fs::write(server.session(), entry(1, "replaced")).unwrap();
    let (_, data) = next(&mut again);
    assert!(
        html(&data).contains("replaced") && !html(&data).contains("the fourth"),
        "{data}"
    );
}

#[cfg(unix)]
#[test]
fn the_server_ends_with_0_when_it_is_asked_to() {
    let mut server = Server::start();
    let pid = server.child.id().to_string();
    let asked = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status()
        .unwrap();
    assert!(asked.success());
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_token_that_could_be_guessed_is_refused() {
    for token in ["short", "with spaces and more", "slash/slash/slash/slash"] {
        let output = command(&["serve"])
            .env("TRANSCRIPT_SERVE_TOKEN", token)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{token}");
        assert!(!String::from_utf8_lossy(&output.stderr).contains(token));
    }
}

#[cfg(unix)]
#[test]
fn a_project_that_is_a_link_inside_the_folder_of_projects_is_listed_searched_and_opened() {
    let server = Server::start();
    let page = "s/-inside/44444444-2222-4333-8444-555555555555/";
    for path in ["", "?q=inside"] {
        let (_, answer) = server.get(path);
        assert!(answer.contains(page), "{path}: {answer}");
    }
    assert_eq!(server.get(page).0, 200);
    assert_eq!(server.get(&format!("s/-work/{INSIDE}/")).0, 200);
}

#[test]
fn no_page_shows_a_secret_if_that_is_asked_for() {
    const SECRET: &str = concat!("gh", "p_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6");
    let server = Server::start_with(&["--redact", "--emails"]);
    // In what is the title, too, and where it is longer than its mask.
    let first = entry(1, &format!("use {SECRET} of ada@example.org"));
    fs::write(server.session(), first.repeat(2)).unwrap();
    let page = format!("s/-work/{ID}/");
    let check = |text: &str, what: &str| {
        assert!(
            !text.contains(&SECRET[4..14]) && !text.contains("ada@"),
            "{what}: {text}"
        );
        assert!(text.contains("[redacted: GitHub token]"), "{what}: {text}");
    };
    check(&server.get("").1, "the list");
    check(&server.get("?q=use").1, "the search");
    check(&server.get(&page).1, "the session");
    assert!(!server.get("?q=aB3dE6gH9j").1.contains("use"));
    let events = format!("/{TOKEN}/{page}events");
    let mut reader = BufReader::new(server.connect("GET", &events, &[]));
    next(&mut reader);
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(server.session())
        .unwrap();
    for number in 2..6 {
        // A line arrives in two parts, the first of which ends within the secret.
        let line = entry(number, &format!("prompt {number} with {SECRET}, too"));
        let at = line.find(SECRET).unwrap() + 20;
        file.write_all(&line.as_bytes()[..at]).unwrap();
        std::thread::sleep(Duration::from_millis(150));
        file.write_all(&line.as_bytes()[at..]).unwrap();
        loop {
            let data = next(&mut reader).1.to_string();
            assert!(!data.contains(&SECRET[4..14]), "{data}");
            if data.contains(&format!(
                "prompt {number} with [redacted: GitHub token], too"
            )) {
                break;
            }
        }
    }
}

#[test]
fn session_rewritten_in_place_is_shown_again() {
    rewritten_in_place("");
}

/// Of a large file a part is compared at a time.
#[test]
fn a_rewrite_in_the_middle_of_a_large_file_is_shown() {
    let snapshot = json!({"type": "file-history-snapshot", "snapshot": "x".repeat(1 << 20)});
    rewritten_in_place(&format!("{snapshot}\n").repeat(18));
}

/// `padding` is around what is rewritten.
fn rewritten_in_place(padding: &str) {
    use std::io::{Seek, SeekFrom};
    let server = Server::start();
    let mut file = fs::OpenOptions::new()
        .write(true)
        .open(server.session())
        .unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    // The rewritten bytes are neither at the start nor at the end of those that were read.
    file.write_all(padding.as_bytes()).unwrap();
    for number in 2..40 {
        let line = entry(number, &format!("prompt {number} was written first"));
        file.write_all(line.as_bytes()).unwrap();
    }
    file.write_all(padding.as_bytes()).unwrap();
    let events = format!("/{TOKEN}/s/-work/{ID}/events");
    let mut reader = BufReader::new(server.connect("GET", &events, &[]));
    let mut wait_for = |text: &str| {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert!(reader.read_line(&mut line).unwrap() > 0, "the stream ended");
        }
    };
    wait_for("prompt 20 was written first");
    let whole = fs::read_to_string(server.session()).unwrap();
    let old = "prompt 20 was written first";
    let at = whole.find(old).unwrap() as u64;
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(b"prompt 20 was written later").unwrap();
    wait_for("prompt 20 was written later");
    let later = fs::read(server.session()).unwrap();
    assert_eq!(later.len(), whole.len());
    // The same with more at the end.
    file.seek(SeekFrom::End(0)).unwrap();
    file.write_all(entry(40, "one more").as_bytes()).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(b"prompt 20 was written again").unwrap();
    wait_for("prompt 20 was written again");
    let (_, page) = server.get(&format!("s/-work/{ID}/"));
    assert!(!page.contains("cannot be read"), "{page}");
}

/// Returns the address of a session in a list.
#[cfg(feature = "import")]
fn address_of(list: &str, id: &str) -> String {
    let links = list.split("href=\"").skip(1);
    let mut links = links.filter_map(|link| link.split('"').next());
    let link = links.find(|link| link.starts_with("s/") && link.ends_with(&format!("/{id}/")));
    link.unwrap_or_else(|| panic!("no session {id} in {list}"))
        .to_owned()
}

#[cfg(feature = "import")]
#[test]
fn sessions_of_other_agents_are_listed_have_pages_and_are_counted() {
    let home = tempfile::tempdir().unwrap();
    agents_home::write(home.path());
    let server = Server::of_home(home);
    let before = files(server.folder.path());
    let (status, list) = server.get("");
    assert_eq!(status, 200);
    for agent in ["codex", "pi", "gemini"] {
        assert!(list.contains(&format!("<td>{agent}</td>")), "{list}");
    }
    // Each column has a cell in each row.
    let cells = list.split("<tr>").skip(1).map(|row| {
        let names = ["<th>", "<th ", "<td>", "<td "];
        let cells = names.map(|name| row.matches(name).count());
        cells.iter().sum::<usize>()
    });
    assert_eq!(cells.collect::<Vec<_>>(), [6; 4], "{list}");
    for (agent, id, shown) in [
        // A patch is a diff, and a shell call has its command.
        (
            "codex",
            agents_home::CODEX,
            ["<b>apply_patch</b>", "+1 −1", "cargo test"],
        ),
        (
            "gemini",
            agents_home::GEMINI,
            ["<b>replace</b>", "+1 −1", "$0.0018"],
        ),
        (
            "pi",
            agents_home::PI,
            ["an early answer", "ask again", "tell pi"],
        ),
    ] {
        let address = address_of(&list, id);
        let (status, page) = server.get(&address);
        assert_eq!(status, 200, "{agent}");
        assert!(
            page.contains(&format!(">{agent}<")),
            "the facts name {agent}: {page}"
        );
        let keys = page.split("part?key=").skip(1);
        let keys = keys.filter_map(|key| key.split('"').next());
        let parts: String = keys
            .map(|key| {
                let (status, part) = server.get(&format!("{address}part?key={key}"));
                assert_eq!(status, 200, "{agent} {key}");
                part
            })
            .collect();
        for text in shown {
            assert!(parts.contains(text), "{agent}: {text} in {parts}");
        }
        // Branches are on exported pages only.
        assert!(!parts.contains("an abandoned question"), "{parts}");
    }
    let (_, found) = server.get("?q=%22tell+pi%22");
    assert!(found.contains("1 hit in 1 session"), "{found}");
    let (_, usage) = server.get("usage");
    for text in ["By agent", "<td>gemini</td>", "<td>gpt-5</td>"] {
        assert!(usage.contains(text), "{text} in {usage}");
    }
    assert_eq!(files(server.folder.path()), before);
}
