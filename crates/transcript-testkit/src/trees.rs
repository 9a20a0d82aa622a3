//! Generates folders of sessions for the search, from a seed, and queries for them.
//!
//! The sessions are those of [`crate::generate`], damaged by [`crate::damage`] now and then, with the
//! texts replaced: words of many scripts, in every spelling that JSON has for a character, some of
//! them in places that are not searched. Around them are what a store has besides: forks that keep
//! the uuids, hand-offs, subagents, stored results, files that are not sessions.

use std::collections::HashMap;
use std::path::Path;
use std::{fs, io};

use serde_json::{Map, Value, json};

use crate::model::search::FIELDS;
use crate::rng::Rng;
use crate::{damage, generate};

/// A folder of projects.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Path below the root, with `/`, and content; no path twice.
    pub files: Vec<(String, Vec<u8>)>,
    /// Texts that were put into the sessions, in searched fields and in others; from these come the
    /// queries.
    pub texts: Vec<String>,
    /// Session ids.
    pub sessions: Vec<String>,
}

/// Returns a tree of one to eight sessions. Equal seeds give equal trees.
#[must_use]
pub fn tree(seed: u64) -> Tree {
    let mut rng = Rng::new(seed ^ 0x07EE_5EED);
    let mut maker = Maker {
        tree: Tree::default(),
        projects: (0..rng.range(1, 3)).map(|_| project(&mut rng)).collect(),
        healthy: Vec::new(),
        rng,
    };
    for _ in 0..maker.rng.range(1, 4) {
        maker.session();
    }
    for _ in 0..maker.rng.below(5) {
        maker.copy();
    }
    for _ in 0..maker.rng.below(3) {
        maker.agent();
    }
    maker.other_files();
    maker.tree
}

impl Tree {
    /// Takes the words of the sessions below `root`: of every line a few strings.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                if let Some(stem) = path.file_stem() {
                    tree.sessions.push(stem.to_string_lossy().into_owned());
                }
                let bytes = fs::read(&path)?;
                entries(&bytes)
                    .iter()
                    .for_each(|entry| add_strings(entry, &mut tree.texts));
            }
        }
        // The order of folders is not that of their names.
        tree.texts.sort();
        tree.sessions.sort();
        Ok(tree)
    }

    /// Writes the files below `root`, which is created.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub fn write(&self, root: &Path) -> io::Result<()> {
        fs::create_dir_all(root)?;
        for (path, bytes) in &self.files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap_or(root))?;
            fs::write(path, bytes)?;
        }
        Ok(())
    }
}

/// Words that meet in many texts: as in code; with letters whose case mapping changes their length or
/// is not one to one; with diacritics, composed or combining; Chinese, Japanese and Korean; emoji.
/// Many are one word in several spellings, which a search must keep apart or find together.
const WORDS: &str = "deploy Deploy DEPLOY error Error: timeout timeouts the a to parser Parser ParserError \
     snake_case camelCase foo.bar foo_bar fooxbar c++ C++ c #4411 4411 src/main.rs src\\main.rs main.rs a/b/c ./a x=1 \
     \"quoted\" quoted 'single' back\\slash \\n \\u0041 {} [x] (y) $HOME 100% a*b a|b ^start end$ e-mail@example.com \
     --flag -n user:me role:user role: error:x <b>bold</b> &amp; // comment /regex/ \u{1b}[31mred\u{1b}[0m \
     Straße STRASSE strasse STRAẞE İstanbul istanbul ISTANBUL ısparta ſelf self SELF \u{212a}elvin kelvin \
     \u{212b}ngström ångström ΣΊΣΥΦΟΣ σίσυφος σίσυφοσ ǅungla ﬁle file ΰ Привет привет ᲐᲑ აბ Ꭰꭰ ⓐⒶ \
     café cafe\u{301} cafe CAFÉ naïve Zürich Zu\u{308}rich Việt Vie\u{323}\u{302}t a\u{301}\u{328} \u{301}alone \
     ñandú שָׁלוֹם हिन्दी مَرْحَبًا \
     你好世界 世界 漢字 日本語 カタカナ ｶﾞｷﾞ が か\u{3099} 검색 한국어 \u{1100}\u{1161}\u{11a8} 각 全角ＡＢＣ 𠮷野家 \
     🦀 👩\u{200d}💻 👨\u{200d}👩\u{200d}👧 🏳\u{fe0f}\u{200d}🌈 👍🏽 🇩🇪";

const SEPARATORS: [&str; 16] = [
    " ", " ", " ", " ", " ", "\n", "\n\n", "\t", ", ", "", "-", "\r\n", "\u{a0}", "\u{2028}",
    "\u{200b}", "\u{0}",
];

const TOOLS: [&str; 7] = [
    "Bash",
    "Read",
    "Edit",
    "Write",
    "Task",
    "Grep",
    "mcp__docs__find",
];

const PATHS: [&str; 5] = [
    "/home/dev/work/src/main.rs",
    "/home/dev/work/a.rs",
    "src/lib.rs",
    "C:\\work\\src\\main.rs",
    "/home/dev/größe/日本語.txt",
];

const BRANCHES: [&str; 4] = ["main", "feat/search", "fix-4411", "HEAD"];

/// Returns a random text: as a rule a few words, sometimes many.
#[must_use]
pub fn text(rng: &mut Rng) -> String {
    let count = match rng.below(60) {
        0 => rng.range(400, 9_000),
        1..=6 => rng.range(20, 120),
        _ => rng.range(1, 9),
    };
    let mut text = String::new();
    for _ in 0..count {
        if !text.is_empty() {
            text.push_str(one_of(rng, &SEPARATORS));
        }
        match rng.below(8) {
            0 => text.push_str(&rare_word(rng)),
            1 => text.push_str(&word(rng).to_uppercase()),
            _ => text.push_str(word(rng)),
        }
    }
    text
}

fn word(rng: &mut Rng) -> &'static str {
    let words: Vec<&str> = WORDS.split(' ').collect();
    one_of(rng, &words)
}

fn one_of<'t>(rng: &mut Rng, texts: &[&'t str]) -> &'t str {
    texts[rng.below(texts.len())]
}

/// Returns a word that is hardly in a second text.
fn rare_word(rng: &mut Rng) -> String {
    let letters = [
        "a", "é", "k", "r", "T", "o", "漢", "ü", "n", "S", "9", "_", "ı", "검",
    ];
    (0..rng.range(3, 8)).map(|_| *rng.pick(&letters)).collect()
}

/// Returns a random query in the words of a tree, or of none: words, phrases, regular expressions,
/// single characters, words to leave out, filters.
#[must_use]
pub fn query(tree: &Tree, rng: &mut Rng) -> String {
    let mut terms = Vec::new();
    match rng.below(20) {
        0..=3 => terms.push(spelled(&word_of(tree, rng), rng)),
        4..=5 => terms.push(part_of(tree, rng, 1, 2)),
        6..=7 => terms.push(spelled(&part_of(tree, rng, 3, 12), rng)),
        8..=10 => terms.push(phrase(tree, rng)),
        11..=12 => {
            let text = text_of(tree, rng).to_owned();
            let words: Vec<&str> = text.split_whitespace().collect();
            for _ in 0..rng.range(2, 4) {
                if !words.is_empty() {
                    terms.push(spelled(one_of(rng, &words), rng));
                }
            }
        }
        13 => {
            terms.push(word_of(tree, rng));
            terms.push(word_of(tree, rng));
        }
        14..=16 => terms.push(expression(tree, rng)),
        17 => terms.push(format!("{}{}", rare_word(rng), rare_word(rng))),
        18 => {
            terms.push(phrase(tree, rng));
            terms.push(expression(tree, rng));
        }
        // Filters alone.
        _ => terms.push(filter(tree, rng)),
    }
    if rng.one_in(6) {
        let unwanted = match rng.below(4) {
            0 => phrase(tree, rng),
            1 => expression(tree, rng),
            2 => filter(tree, rng),
            _ => word_of(tree, rng),
        };
        terms.push(format!("-{unwanted}"));
    }
    while rng.one_in(4) {
        terms.push(filter(tree, rng));
    }
    if rng.one_in(3) {
        rng.shuffle(&mut terms);
    }
    let mut query = terms.join(*rng.pick(&[" ", " ", "  "]));
    if rng.one_in(8) {
        query.push_str(ADDED_FILTERS_MARK);
        for _ in 0..rng.range(1, 3) {
            let keys = ["role:", "in:", "tool:", "error:", "live:", "project:"];
            let filter = filter(tree, rng);
            if keys.iter().any(|key| filter.starts_with(key)) {
                query.push_str(&format!(" {filter}"));
            }
        }
    }
    query
}

/// The mark before filters that are added to a query and are not part of its text. They have no quotes.
pub const ADDED_FILTERS_MARK: &str = " |added|";

fn text_of<'t>(tree: &'t Tree, rng: &mut Rng) -> &'t str {
    let text: &String = rng.pick(&tree.texts);
    text
}

fn word_of(tree: &Tree, rng: &mut Rng) -> String {
    let words: Vec<&str> = text_of(tree, rng).split_whitespace().collect();
    if words.is_empty() {
        "word".to_owned()
    } else {
        (*rng.pick(&words)).to_owned()
    }
}

/// Returns characters of a text that follow each other, without white space and quotes.
fn part_of(tree: &Tree, rng: &mut Rng, least: usize, most: usize) -> String {
    let text = text_of(tree, rng);
    let chars: Vec<char> = text.chars().collect();
    let from = rng.below(chars.len());
    let count = rng.range(least, most);
    let part = chars.into_iter().skip(from).take(count);
    let part: String = part.filter(|c| !c.is_whitespace() && *c != '"').collect();
    if part.is_empty() {
        "e".to_owned()
    } else {
        part
    }
}

/// Returns a part of a text in quotes, white space included.
fn phrase(tree: &Tree, rng: &mut Rng) -> String {
    let text = text_of(tree, rng);
    let chars: Vec<char> = text.chars().collect();
    let from = rng.below(chars.len());
    let count = rng.range(1, 30);
    let part: String = chars.into_iter().skip(from).take(count).collect();
    format!("\"{}\"", spelled(&part.replace('"', ""), rng))
}

/// Returns a text in another case, or without its diacritics, now and then.
fn spelled(text: &str, rng: &mut Rng) -> String {
    match rng.below(8) {
        0..=2 => text.to_lowercase(),
        3 => text.to_uppercase(),
        4 => text.replace(['é', '\u{301}', '\u{308}'], "e"),
        _ => text.to_owned(),
    }
}

/// Returns a regular expression that as a rule matches a text of the tree.
fn expression(tree: &Tree, rng: &mut Rng) -> String {
    let escaped = |text: &str| {
        let mut out = String::new();
        for c in text.chars() {
            if c.is_ascii_punctuation() {
                out.push('\\');
            }
            out.push(c);
        }
        out
    };
    let one = escaped(&part_of(tree, rng, 1, 6));
    let other = escaped(&part_of(tree, rng, 1, 4));
    let expression = match rng.below(14) {
        0 => one,
        1 => format!("{one}|{other}"),
        2 => format!("{one}.{{0,9}}{other}"),
        3 => format!("\\b{one}\\b"),
        4 => format!("^{one}"),
        5 => format!("{one}$"),
        6 => format!("(?i){one}"),
        7 => format!("(?i:{one}).*{other}"),
        8 => format!("[{other}]+x?{one}"),
        9 => format!("{one}\\s+\\S"),
        10 => "\\d{4}".to_owned(),
        11 => "\\p{Han}{2,}|\\p{Hangul}".to_owned(),
        12 => format!("({one}|{other}){{2}}"),
        _ => format!("(?s){one}.+{other}"),
    };
    let flag = if rng.one_in(4) { "i" } else { "" };
    format!("/{expression}/{flag}")
}

/// Returns one filter.
fn filter(tree: &Tree, rng: &mut Rng) -> String {
    let day = |rng: &mut Rng| match rng.below(4) {
        0 => "2026-11-20".to_owned(),
        1 => "2026-11-21".to_owned(),
        2 => format!("2026-11-20T{:02}:{:02}:00Z", rng.below(24), rng.below(60)),
        _ => "2026-12".to_owned(),
    };
    match rng.below(13) {
        0 => format!(
            "role:{}",
            *rng.pick(&["user", "assistant", "system", "tool"])
        ),
        1 => format!(
            "tool:{}",
            *rng.pick(&["Bash", "bash", "Read", "Edit", "mcp__docs__find"])
        ),
        2 => format!(
            "path:{}",
            *rng.pick(&["main.rs", "src/", "a.rs", "größe", "Work"])
        ),
        3..=4 => format!("in:{}", *rng.pick(&FIELDS)),
        5 => format!(
            "project:{}",
            *rng.pick(&["work", "/home/dev/work", "tmp", "other"])
        ),
        6 => format!(
            "branch:{}",
            *rng.pick(&["main", "feat/search", "fix", "\"HEAD\"", "live", "rewound"])
        ),
        7 => format!("model:{}", *rng.pick(&["opus", "haiku", "claude-opus-5-5"])),
        8 => format!("agent:{}", *rng.pick(&["a", "Explore", "true", "none"])),
        9 => format!("since:{}", day(rng)),
        10 => format!("until:{}", day(rng)),
        11 => format!("{}:{}", *rng.pick(&["error", "live"]), rng.one_in(2)),
        _ => {
            let session = rng.pick(&tree.sessions);
            let len = session.len().min(*rng.pick(&[4, 8, 36]));
            format!("session:{}", &session[..len])
        }
    }
}

fn project(rng: &mut Rng) -> String {
    let names = [
        "-home-dev-work",
        "-home-dev-other",
        "-tmp-x",
        "C--work",
        "-",
    ];
    format!("{}{}", *rng.pick(&names), rng.below(10))
}

struct Maker {
    rng: Rng,
    tree: Tree,
    projects: Vec<String>,
    /// Undamaged sessions: project, id, entries.
    healthy: Vec<(String, String, Vec<Value>)>,
}

impl Maker {
    /// Adds a session, most of them with texts of the search.
    fn session(&mut self) {
        let seed = self.rng.next_u64();
        let bytes = match self.rng.below(3) {
            0 => generate::session(seed),
            _ => generate::tidy_session(seed),
        };
        let longest = *self.rng.pick(&[12, 30, 60, 300]);
        let mut entries = entries(&bytes);
        entries.truncate(longest);
        let mut id = generate::uuid(&mut self.rng);
        for entry in &mut entries {
            self.dress(entry);
            if entry.get("sessionId").is_some() {
                entry["sessionId"] = json!(id);
            }
        }
        for _ in 0..self.rng.below(4) {
            let at = self.rng.below(entries.len() + 1);
            let line = self.metadata_line(&id);
            entries.insert(at, line);
        }
        let project = self.rng.pick(&self.projects).clone();
        self.stored_results(&project, &id, &mut entries);
        self.healthy
            .push((project.clone(), id.clone(), entries.clone()));
        // The name of the file need not be the id inside.
        if self.rng.one_in(15) {
            id = generate::uuid(&mut self.rng);
        }
        self.put_session(&project, &id, &entries);
    }

    /// Writes a session with its own habits of spelling, some of them damaged.
    fn put_session(&mut self, project: &str, id: &str, entries: &[Value]) {
        let mut bytes = self.spell_lines(entries);
        if self.rng.one_in(3) {
            bytes = damage::damage(&bytes, self.rng.next_u64()).0;
        }
        self.tree.sessions.push(id.to_owned());
        self.put(&format!("{project}/{id}.jsonl"), bytes);
    }

    fn put(&mut self, path: &str, bytes: Vec<u8>) {
        if !self.tree.files.iter().any(|(other, _)| other == path) {
            self.tree.files.push((path.to_owned(), bytes));
        }
    }

    /// Copies the start of a session, which may be a copy itself, into another file, and continues there: a
    /// fork, a hand-off to the background, a fork by the SDK with new uuids, one that keeps them, or the
    /// whole file in another project. Some entries of some copies are altered.
    fn copy(&mut self) {
        let at = self.rng.below(self.healthy.len());
        let (project, old, mut entries) = self.healthy[at].clone();
        let kind = self.rng.below(6);
        let is_of_sdk = kind == 2 || kind == 3;
        if kind < 5 {
            entries.truncate(self.rng.range(1, entries.len()));
        }
        if is_of_sdk {
            // Only the conversation is copied.
            let is_aside = |entry: &Value| entry["isSidechain"] == true;
            entries.retain(|entry| entry["uuid"].is_string() && !is_aside(entry));
        }
        let id = generate::uuid(&mut self.rng);
        let is_altered = self.rng.one_in(3);
        let mut uuids = HashMap::new();
        for entry in &mut entries {
            if is_altered && self.rng.one_in(4) {
                self.alter(entry);
            }
            let uuid = entry["uuid"].clone();
            let Some(object) = entry.as_object_mut() else {
                continue;
            };
            object.insert("sessionId".into(), json!(id));
            match kind {
                1 => {
                    object.insert("session_id".into(), json!(old));
                    object.insert("sessionKind".into(), json!("bg"));
                }
                2 | 3 => {
                    let from = json!({"sessionId": old, "messageUuid": uuid});
                    object.insert("forkedFrom".into(), from);
                    for key in ["uuid", "parentUuid"] {
                        if let Some(uuid) = object.get(key).and_then(Value::as_str) {
                            let new = uuids.entry(uuid.to_owned());
                            let new = new.or_insert_with(|| generate::uuid(&mut self.rng));
                            object.insert(key.into(), json!(new));
                        }
                    }
                }
                4 => {
                    let wrong = [json!(7), json!(""), json!({"no": uuid}), uuid.clone()];
                    let origin = if self.rng.one_in(6) {
                        self.rng.pick(&wrong).clone()
                    } else {
                        uuid
                    };
                    let from = json!({"sessionId": old, "messageUuid": origin});
                    let from = if self.rng.one_in(12) { origin } else { from };
                    object.insert("forkedFrom".into(), from);
                    if self.rng.one_in(9) {
                        object.remove("uuid");
                    }
                }
                _ => {}
            }
        }
        if is_of_sdk {
            let title = format!("{} (fork)", self.text());
            let uuid = generate::uuid(&mut self.rng);
            entries.push(json!({"type": "custom-title", "sessionId": id, "customTitle": title, "uuid": uuid}));
        }
        let fork = (project.clone(), id.clone(), entries.clone());
        if !entries.is_empty() {
            self.healthy.push(fork);
        }
        // The entries after the fork, which only the copy has.
        let leaf = entries.iter().rev().find_map(|e| e["uuid"].as_str());
        let leaf = leaf.map(str::to_owned);
        let more = generate::tidy_session(self.rng.next_u64());
        let count = self.rng.below(12);
        for mut entry in self::entries(&more).into_iter().take(count) {
            if entry["parentUuid"].is_null() && entry.get("uuid").is_some() {
                entry["parentUuid"] = json!(leaf);
            }
            self.dress(&mut entry);
            entry["sessionId"] = json!(id);
            entries.push(entry);
        }
        let project = if self.rng.one_in(3) {
            self.rng.pick(&self.projects).clone()
        } else {
            project
        };
        self.put_session(&project, &id, &entries);
    }

    /// Changes the texts of an entry, or their kinds.
    fn alter(&mut self, entry: &mut Value) {
        match self.rng.below(4) {
            0 => entry["isMeta"] = json!(true),
            1 => {
                let blocks = entry["message"]["content"].as_array_mut();
                // The texts are the same, but not their blocks.
                if let Some(blocks) = blocks {
                    blocks.insert(0, json!({"type": "redacted_thinking", "data": "deploy"}));
                }
            }
            _ => self.dress(entry),
        }
    }

    /// Adds the file of a subagent, where clients of one version or another put it.
    fn agent(&mut self) {
        let at = self.rng.below(self.healthy.len());
        let (project, id, _) = self.healthy[at].clone();
        let agent = format!("a{:07x}", self.rng.below(1 << 28));
        let mut entries = entries(&generate::tidy_session(self.rng.next_u64()));
        entries.truncate(self.rng.range(1, 20));
        for entry in &mut entries {
            self.dress(entry);
            entry["isSidechain"] = json!(true);
            entry["agentId"] = json!(agent);
            entry["sessionId"] = json!(id);
        }
        let bytes = self.spell_lines(&entries);
        let folder = match self.rng.below(4) {
            0 => project.clone(),
            1 => format!("{project}/{id}/subagents/workflows/w1"),
            _ => format!("{project}/{id}/subagents"),
        };
        self.put(&format!("{folder}/agent-{agent}.jsonl"), bytes);
        if self.rng.one_in(2) {
            let description = self.text();
            let meta = json!({"agentType": "Explore", "description": description});
            self.put(
                &format!("{folder}/agent-{agent}.meta.json"),
                meta.to_string().into_bytes(),
            );
        }
    }

    /// Moves some results into files of their own, as clients do with large ones.
    fn stored_results(&mut self, project: &str, id: &str, entries: &mut [Value]) {
        for entry in entries {
            if !self.rng.one_in(5) {
                continue;
            }
            let Some(block) = entry.pointer_mut("/message/content/0") else {
                continue;
            };
            if block["type"] != "tool_result" {
                continue;
            }
            let call = block["tool_use_id"].as_str().unwrap_or("none").to_owned();
            let name = match self.rng.below(4) {
                0 => format!("{call}.txt"),
                // Starts of each other.
                3 => (*self.rng.pick(&["b1", "b1.t", "b1.txt", "b1.txt2", "b1-"])).to_owned(),
                1 => format!("b{:06x}.txt", self.rng.below(1 << 24)),
                _ => format!("{call}.json"),
            };
            let mut whole = String::new();
            for _ in 0..self.rng.range(1, 12) {
                whole.push_str(&self.text());
                whole.push('\n');
            }
            let mut bytes = whole.clone().into_bytes();
            if self.rng.one_in(6) {
                let at = self.rng.below(bytes.len());
                bytes[at] = 0xff;
            }
            let preview: String = whole.chars().take(40).collect();
            let path = format!("/home/dev/.claude/projects/{project}/{id}/tool-results/{name}");
            block["content"] = json!(format!(
                "<persisted-output>\nOutput too large ({} B). Full output saved to: {path}\n\nPreview (first 2KB):\n{preview}\n...\n</persisted-output>",
                bytes.len()
            ));
            if self.rng.one_in(12) {
                entry["message"]["content"][0]["content"] = json!([]);
            }
            entry["toolUseResult"] = json!({"stdout": preview, "persistedOutputPath": path, "persistedOutputSize": bytes.len()});
            self.put(&format!("{project}/{id}/tool-results/{name}"), bytes);
        }
    }

    /// Adds the files that a store has besides sessions.
    fn other_files(&mut self) {
        let project = self.projects[0].clone();
        let id = self.tree.sessions[0].clone();
        let text = self.text().into_bytes();
        match self.rng.below(7) {
            6 => {
                // All that is left of a session.
                let gone = generate::uuid(&mut self.rng);
                self.put(&format!("{project}/{gone}/tool-results/b1.txt"), text);
            }
            0 => self.put(&format!("{project}/sessions-index.json"), text),
            1 => self.put(&format!("{project}/memory/MEMORY.md"), text),
            2 => self.put(&format!("{project}/{id}/tool-results/unnamed.txt"), text),
            3 => {
                let empty = generate::uuid(&mut self.rng);
                self.put(&format!("{project}/{empty}.jsonl"), Vec::new());
            }
            4 => self.put(&format!("{project}/notes.jsonl"), text),
            _ => {}
        }
    }

    /// Returns a text, and remembers it for queries.
    fn text(&mut self) -> String {
        // Some words meet again, in another place, another file or another block.
        let text = if !(self.tree.texts.is_empty() || self.rng.one_in(12)) && self.rng.one_in(8) {
            self.rng.pick(&self.tree.texts).clone()
        } else {
            text(&mut self.rng)
        };
        self.tree.texts.push(text.clone());
        text
    }

    /// Returns a line that names the session, queues a prompt or summarises.
    fn metadata_line(&mut self, id: &str) -> Value {
        let text = self.text();
        let time = "2026-11-20T11:00:00.000Z";
        match self.rng.below(8) {
            0 => json!({"type": "custom-title", "customTitle": text, "sessionId": id}),
            1 => json!({"type": "ai-title", "aiTitle": text, "sessionId": id}),
            2 => json!({"type": "summary", "summary": text, "leafUuid": "gone"}),
            3 => json!({"type": "last-prompt", "lastPrompt": text, "sessionId": id}),
            4 => {
                json!({"type": "queue-operation", "operation": "enqueue", "timestamp": time, "content": text, "sessionId": id})
            }
            5 => {
                json!({"type": "queue-operation", "operation": "popAll", "timestamp": time, "content": text, "sessionId": id})
            }
            6 => json!({"type": "tag", "tag": text, "sessionId": id}),
            _ => json!({"type": "agent-name", "agentName": text, "sessionId": id}),
        }
    }

    // ---------------------------------------------------------------------------------------------
    // Texts in the place of those of the generator
    // ---------------------------------------------------------------------------------------------

    /// Replaces the texts of an entry, and adds some where nothing is searched.
    fn dress(&mut self, entry: &mut Value) {
        for key in ["summary", "customTitle", "aiTitle", "lastPrompt", "content"] {
            if entry.get(key).is_some_and(Value::is_string) && !self.rng.one_in(4) {
                entry[key] = json!(self.text());
            }
        }
        if entry["type"] == "attachment" {
            self.dress_attachment(entry);
        }
        if entry.get("gitBranch").is_none() && self.rng.one_in(2) {
            entry["gitBranch"] = json!(*self.rng.pick(&BRANCHES));
        }
        if self.rng.one_in(6) {
            entry["cwd"] = json!(format!("/home/dev/{}", word(&mut self.rng)));
        }
        if entry.get("toolUseResult").is_some() {
            entry["toolUseResult"]["stdout"] = json!(self.text());
        }
        let Some(message) = entry.get_mut("message").filter(|m| m.is_object()) else {
            return;
        };
        let mut message = message.take();
        if message["role"] == "assistant" && message["model"] != "<synthetic>" {
            message["model"] = json!(*self.rng.pick(&["claude-opus-5-5", "claude-haiku-4-5"]));
        }
        if message["content"].is_string() && !self.rng.one_in(5) {
            message["content"] = json!(self.text());
        }
        if let Some(blocks) = message["content"].as_array_mut() {
            let mut dressed: Vec<Value> = Vec::new();
            for mut block in std::mem::take(blocks) {
                self.dress_block(&mut block);
                dressed.push(block);
            }
            // A text that is divided, as a stream divides it.
            if self.rng.one_in(12) {
                let text = self.text();
                let middle = text.char_indices().nth(text.chars().count() / 2);
                let (head, tail) = text.split_at(middle.map_or(0, |(at, _)| at));
                dressed.push(json!({"type": "text", "text": head}));
                dressed.push(json!({"type": "text", "text": tail}));
            }
            *blocks = dressed;
        }
        entry["message"] = message;
    }

    fn dress_block(&mut self, block: &mut Value) {
        match block["type"].as_str() {
            Some("text") => block["text"] = json!(self.text()),
            Some("thinking") => {
                block["thinking"] = json!(self.text());
                block["signature"] = json!("ZGVwbG95 deploy");
            }
            Some("tool_use") => {
                block["name"] = json!(*self.rng.pick(&TOOLS));
                block["input"] = self.input(0);
            }
            Some("tool_result") => match &mut block["content"] {
                Value::String(text) => *text = self.text(),
                Value::Array(parts) => {
                    let mut parts = std::mem::take(parts);
                    for part in &mut parts {
                        self.dress_block(part);
                    }
                    if self.rng.one_in(3) {
                        parts.push(json!({"type": "text", "text": self.text()}));
                    }
                    block["content"] = json!(parts);
                }
                _ => {}
            },
            Some("image") => block["source"]["data"] = json!("deploy/error+parser=="),
            _ => {}
        }
        if self.rng.one_in(60) {
            block["citations"] = json!([{"type": "char_location", "cited_text": self.text()}]);
        }
    }

    /// Returns the input of a call: strings at any depth, and what is not a string.
    fn input(&mut self, depth: usize) -> Value {
        let mut object = Map::new();
        for _ in 0..self.rng.range(0, 4) {
            let key =
                *self
                    .rng
                    .pick(&["command", "description", "deploy", "pattern", "größe", "n"]);
            let value = match self.rng.below(8) {
                0 if depth < 3 => self.input(depth + 1),
                1 => json!([self.text(), self.rng.below(4411), {"text": self.text()}]),
                2 => json!(self.rng.below(5000)),
                3 => json!(self.rng.one_in(2)),
                _ => json!(self.text()),
            };
            object.insert(key.to_owned(), value);
        }
        if self.rng.one_in(2) {
            let path = *self.rng.pick(&PATHS);
            let key = *self.rng.pick(&["file_path", "path", "notebook_path"]);
            object.insert(key.to_owned(), json!(path));
        }
        Value::Object(object)
    }

    fn dress_attachment(&mut self, entry: &mut Value) {
        let text = self.text();
        match self.rng.below(6) {
            0 => entry["attachment"] = json!({"type": "queued_command", "prompt": text}),
            1 => {
                let plan = json!({"type": "plan_file_reference", "planFilePath": "/p.md", "planContent": text});
                entry["attachment"] = plan;
            }
            2 => {
                let todos =
                    json!([{"content": text, "status": "pending", "activeForm": self.text()}]);
                entry["attachment"] =
                    json!({"type": "todo_reminder", "content": todos, "itemCount": 1});
            }
            3 => entry["attachment"]["content"] = json!(text),
            _ => {}
        }
        if let Some(rendered) = entry.get_mut("rendered").and_then(Value::as_array_mut) {
            for part in rendered.iter_mut() {
                part["content"] = json!(text);
            }
        }
    }

    // ---------------------------------------------------------------------------------------------
    // Spelling
    // ---------------------------------------------------------------------------------------------

    /// Returns the lines of a file in one of many spellings.
    fn spell_lines(&mut self, entries: &[Value]) -> Vec<u8> {
        let spelling = Spelling {
            escapes: *self.rng.pick(&Escapes::ALL),
            spaces: self.rng.one_in(6),
            shuffles: self.rng.one_in(4),
            repeats_keys: self.rng.one_in(8),
        };
        let mut out = String::new();
        for entry in entries {
            spell(&mut out, entry, &spelling, &mut self.rng);
            out.push('\n');
        }
        out.into_bytes()
    }
}

/// Returns the objects of a file.
fn entries(bytes: &[u8]) -> Vec<Value> {
    let lines = bytes.split(|byte| *byte == b'\n');
    let values = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    values.filter(Value::is_object).collect()
}

fn add_strings(value: &Value, strings: &mut Vec<String>) {
    match value {
        Value::String(text) if !text.is_empty() => strings.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| add_strings(item, strings)),
        Value::Object(object) => object
            .values()
            .for_each(|value| add_strings(value, strings)),
        _ => {}
    }
}

/// The spelling of the JSON in a file: spaces, escapes, order of keys.
struct Spelling {
    escapes: Escapes,
    spaces: bool,
    shuffles: bool,
    /// Writes a key twice now and then; the last one counts.
    repeats_keys: bool,
}

/// The characters of a string that are written as `\uXXXX`, besides those that must be escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escapes {
    Few,
    /// All beyond ASCII, as Python does.
    Ascii,
    AsciiUpper,
    /// Any, at random.
    Wild,
}

impl Escapes {
    const ALL: [Self; 6] = [
        Self::Few,
        Self::Few,
        Self::Few,
        Self::Ascii,
        Self::AsciiUpper,
        Self::Wild,
    ];
}

/// The order in which clients write the keys; others follow.
const ORDER: [&str; 14] = [
    "parentUuid",
    "isSidechain",
    "userType",
    "cwd",
    "sessionId",
    "version",
    "gitBranch",
    "role",
    "type",
    "id",
    "name",
    "message",
    "uuid",
    "timestamp",
];

fn spell(out: &mut String, value: &Value, spelling: &Spelling, rng: &mut Rng) {
    let space = |out: &mut String, rng: &mut Rng| {
        if spelling.spaces {
            out.push_str(one_of(rng, &["", " ", "  ", "\t"]));
        }
    };
    match value {
        Value::String(text) => spell_text(out, text, spelling.escapes, rng),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                space(out, rng);
                spell(out, item, spelling, rng);
            }
            out.push(']');
        }
        Value::Object(object) => {
            let mut members: Vec<(&String, &Value)> = object.iter().collect();
            let place = |key: &str| ORDER.iter().position(|other| *other == key);
            members.sort_by_key(|(key, _)| place(key).unwrap_or(ORDER.len()));
            if spelling.shuffles {
                rng.shuffle(&mut members);
            }
            out.push('{');
            for (at, (key, value)) in members.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                space(out, rng);
                if spelling.repeats_keys && rng.one_in(30) {
                    let wrong = text(rng);
                    spell_text(out, key, Escapes::Few, rng);
                    out.push(':');
                    spell_text(out, &wrong, spelling.escapes, rng);
                    out.push(',');
                }
                let escapes = match spelling.escapes {
                    Escapes::Wild if rng.one_in(12) => Escapes::Wild,
                    _ => Escapes::Few,
                };
                spell_text(out, key, escapes, rng);
                space(out, rng);
                out.push(':');
                space(out, rng);
                spell(out, value, spelling, rng);
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_string()),
    }
}

fn spell_text(out: &mut String, text: &str, escapes: Escapes, rng: &mut Rng) {
    out.push('"');
    for c in text.chars() {
        let is_wild = escapes == Escapes::Wild && rng.one_in(4);
        let is_upper = escapes == Escapes::AsciiUpper || (is_wild && rng.one_in(2));
        let is_beyond = !c.is_ascii() && matches!(escapes, Escapes::Ascii | Escapes::AsciiUpper);
        match c {
            _ if is_wild || is_beyond => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let escape = if is_upper {
                        format!("\\u{unit:04X}")
                    } else {
                        format!("\\u{unit:04x}")
                    };
                    out.push_str(&escape);
                }
            }
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '/' if escapes == Escapes::Wild => out.push_str("\\/"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn equal_seeds_give_equal_trees_of_valid_lines() {
        for seed in 0..40 {
            let tree = tree(seed);
            assert_eq!(tree.files, super::tree(seed).files, "seed {seed}");
            assert!(!tree.texts.is_empty() && !tree.sessions.is_empty());
            let mut rng = Rng::new(seed);
            for _ in 0..50 {
                assert!(!query(&tree, &mut rng).trim().is_empty());
            }
        }
    }

    #[test]
    fn every_spelling_reads_as_the_same_value() {
        let mut rng = Rng::new(1);
        for escapes in Escapes::ALL {
            for _ in 0..200 {
                let value = json!({"a": [text(&mut rng), {"b/ü": text(&mut rng)}], "n": 1.5});
                let spelling = Spelling {
                    escapes,
                    spaces: rng.one_in(2),
                    shuffles: true,
                    repeats_keys: true,
                };
                let mut out = String::new();
                spell(&mut out, &value, &spelling, &mut rng);
                let read: Value = serde_json::from_str(&out).unwrap();
                assert_eq!(read, value, "{out}");
                assert!(!out.contains('\n'));
            }
        }
    }

    /// Features that some files of the trees must have, by a part of their bytes or their path.
    const FEATURES: [(&str, &str); 18] = [
        ("escaped hangul", "\\uac80"),
        ("escaped in capitals", "\\uAC80"),
        ("surrogate pair", "\\ud83e\\udd80"),
        ("surrogate pair in capitals", "\\uD83E\\uDD80"),
        ("raw emoji", "👩\u{200d}💻"),
        ("escaped slash", "\\/"),
        ("escaped line feed", "\\n"),
        ("combining", "cafe\u{301}"),
        ("hand-off", "\"sessionKind\":\"bg\""),
        ("fork of the SDK", "forkedFrom"),
        ("stored result", "persistedOutputPath"),
        ("queued", "\"queued_command\""),
        ("plan", "planContent"),
        ("title", "customTitle"),
        ("summary", "\"summary\":"),
        ("compaction", "isCompactSummary"),
        ("sidechain", "\"isSidechain\":true"),
        ("spaces", "\"uuid\" :"),
    ];

    #[test]
    fn every_feature_occurs_in_100_trees() {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for seed in 0..100 {
            let tree = tree(seed);
            let mut count = |name, is: bool| *counts.entry(name).or_default() += usize::from(is);
            let any = |part: &str| {
                let mut files = tree.files.iter();
                files.any(|(_, bytes)| String::from_utf8_lossy(bytes).contains(part))
            };
            for (name, part) in FEATURES {
                count(name, any(part));
            }
            let path = |part: &str| tree.files.iter().any(|(path, _)| path.contains(part));
            count("subagents", path("/subagents/agent-"));
            count("nested subagents", path("/workflows/"));
            count("old subagents", path("/agent-") && !path("/subagents/"));
            count("tool-results", path("/tool-results/"));
            let utf8 = |(_, bytes): &(String, Vec<u8>)| String::from_utf8(bytes.clone()).is_ok();
            count("invalid UTF-8", !tree.files.iter().all(utf8));
            let torn = |(path, bytes): &(String, Vec<u8>)| {
                path.ends_with(".jsonl") && !bytes.is_empty() && !bytes.ends_with(b"\n")
            };
            count("torn", tree.files.iter().any(torn));
        }
        println!("{counts:#?}");
        assert!(counts.values().all(|count| *count >= 3), "{counts:#?}");
    }
}
