//! With filters a search finds what it finds without, whatever happened to the files or the filters.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use transcript_catalog::SearchOptions;

use crate::prefilter::key;
use crate::store::Store;

/// Numbers that look random and are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn of<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[self.below(all.len())]
    }
}

const WORDS: &[&str] = &[
    "owl",
    "Owls",
    "crème",
    "creme",
    "BRÛLÉE",
    "brulee",
    "c++",
    "#4411",
    "foo.bar",
    "src/x.rs",
    "日本語",
    "日本",
    "한국어",
    "🦉",
    "\u{212B}ngström",
    "ångström",
    "\u{212A}elvin",
    "kelvin",
    "e\u{301}t\u{e9}",
    "ete",
    "permission",
    "denied",
    "a",
    "the",
    "zebra",
    "ẞtraße",
    "straße",
    "\\n",
    "\\\"x\\\"",
    "\\u00e9t\\u00C9",
    "ſet",
    "set",
];
const TERMS: &[&str] = &[
    "owl",
    "OWL",
    "Owls",
    "creme",
    "crème",
    "brûlée",
    "brulee",
    "BRÛLÉE",
    "c++",
    "#44",
    "o.b",
    "/x.rs",
    "日本",
    "語",
    "국어",
    "🦉",
    "ångström",
    "angstrom",
    "kelvin",
    "elvin",
    "été",
    "ete",
    "permission",
    "denied",
    "xy",
    "a",
    "\"the owl\"",
    "\"owl zebra\"",
    "/ow[lk]/",
    "/OWL/i",
    "/kelvin/i",
    "/set/i",
    "/(zebra|denied)s?/",
    "/[0-9]{4}/",
    "/./",
    "/^owl/",
    "ẞ",
    "straße",
    "zebra owl",
    "permission denied",
    "-owl",
    "-zebra",
    "\u{212A}",
    "\"\\\"x\"",
    "nothing",
    "number17",
    "number3",
];
const FILTERS: &[&str] = &[
    "role:user",
    "role:tool",
    "role:assistant",
    "role:system",
    "in:prompt",
    "in:title",
    "in:tool_input",
    "in:tool_result",
    "in:thinking",
    "tool:Bash",
    "tool:bash",
    "tool:Read",
    "-tool:Bash",
    "path:x.rs",
    "path:/SRC",
    "path:owl",
    "error:true",
    "error:false",
    "since:2026-03-05",
    "until:2026-03-02",
    "since:2026-03-02 until:2026-03-09",
    "-role:user",
    "-since:2026-03-04",
    "model:opus",
    "branch:main",
    "live:true",
    "agent:a1",
    "agent:none",
    "in:title in:summary",
    "role:user role:tool",
    "tool:Read tool:Bash",
];

fn text(random: &mut Random) -> String {
    let words = 1 + random.below(12);
    let words: Vec<&str> = (0..words).map(|_| random.of(WORDS)).collect();
    words.join(random.of(&[" ", " ", "", ". "]))
}

/// A line of a session.
fn line(random: &mut Random, number: usize) -> String {
    let (one, two) = (text(random), text(random));
    let uuid = format!("u{}", random.below(4000));
    let time = match random.below(5) {
        0 => String::new(),
        day => format!(",\"timestamp\":\"2026-03-{:02}T10:00:00Z\"", 2 * day),
    };
    let id = format!("t{}", random.below(12));
    let tool = random.of(&["Bash", "Read", "bash"]);
    let branch = random.of(&["main", "Main", "fix"]);
    let head = format!("\"uuid\":\"{uuid}\",\"gitBranch\":\"{branch}\"{time}");
    match random.below(12) {
        0..=2 => {
            format!(r#"{{"type":"user",{head},"message":{{"content":"{one} number{number}"}}}}"#)
        }
        3 | 4 => format!(
            r#"{{"type":"assistant",{head},"message":{{"model":"opus","content":[{{"type":"thinking","thinking":"{one}"}},{{"type":"text","text":"{two}"}}]}}}}"#
        ),
        5 | 6 => format!(
            r#"{{"type":"assistant",{head},"message":{{"content":[{{"type":"tool_use","id":"{id}","name":"{tool}","input":{{"file_path":"/src/{number}x.rs","command":"{one}"}}}}]}}}}"#
        ),
        7 | 8 => {
            let error = random.of(&["", "", ",\"is_error\":true"]);
            format!(
                r#"{{"type":"user",{head},"message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}","content":"{one}"{error}}}]}},"toolUseResult":"{two}"}}"#
            )
        }
        9 => format!(r#"{{"type":"custom-title","customTitle":"{one}"}}"#),
        10 => format!(
            r#"{{"type":"attachment",{head},"attachment":{{"type":"file"}},"rendered":[{{"content":"{one}"}}]}}"#
        ),
        _ => format!(r#"{{"type":"progress",{head},"data":{{"output":"{one}"}}}}"#),
    }
}

fn lines(random: &mut Random, most: usize) -> String {
    let count = random.below(most);
    (0..count)
        .map(|number| line(random, number) + "\n")
        .collect()
}

/// A tree, and a folder for its filters.
struct Cached {
    store: Store,
    cache: TempDir,
    /// Advances, so that each change has a time of its own.
    clock: u64,
}

impl Cached {
    fn new() -> Self {
        Self {
            store: Store::new(),
            cache: tempfile::tempdir().unwrap(),
            clock: 0,
        }
    }

    fn folder(&self) -> PathBuf {
        self.cache.path().join("transcript/search")
    }

    fn write(&mut self, path: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.store.write(path, bytes);
        self.age(&path);
        path
    }

    /// Makes a file look as if it was changed some time ago, but after all other files.
    fn age(&mut self, path: &Path) {
        self.clock += 1;
        let time =
            SystemTime::now() - Duration::from_secs(100_000) + Duration::from_secs(self.clock);
        File::options()
            .append(true)
            .open(path)
            .unwrap()
            .set_modified(time)
            .unwrap();
    }

    fn options(&self) -> SearchOptions {
        SearchOptions::new().cache(self.folder())
    }

    fn search(&self, query: &str, options: &SearchOptions) -> (Vec<String>, u64) {
        let (hits, mut end) = self.store.search_with(query, options);
        let bytes = std::mem::take(&mut end.bytes);
        let keys = hits.iter().map(key).chain([format!("{end:?}")]).collect();
        (keys, bytes)
    }

    /// Checks that the filters make no difference. Returns the bytes read without and with them.
    fn check(&self, query: &str, what: &str) -> (u64, u64) {
        let (expected, all) = self.search(query, &SearchOptions::new());
        let (found, some) = self.search(query, &self.options());
        assert_eq!(found, expected, "{query}, {what}");
        (all, some)
    }

    fn sidecars(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder()).into_iter().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    }
}

fn query(random: &mut Random) -> String {
    let mut items = Vec::new();
    for _ in 0..random.below(3) {
        items.push(random.of(TERMS));
    }
    for _ in 0..random.below(3) {
        items.push(random.of(FILTERS));
    }
    if items.iter().all(|item| item.starts_with('-')) {
        items.push(random.of(&["owl", "zebra", "role:user", "permission"]));
    }
    items.join(" ")
}

fn tree(random: &mut Random) -> (Cached, Vec<PathBuf>) {
    let mut cached = Cached::new();
    let mut paths = Vec::new();
    for project in 0..1 + random.below(3) {
        for session in 0..1 + random.below(4) {
            let name = format!("-p{project}/s{session}");
            let mut text = lines(random, 40);
            if random.below(12) == 0 {
                text = text.replacen("}\n{", "}{", 1);
            }
            paths.push(cached.write(&format!("{name}.jsonl"), text));
            if random.below(3) == 0 {
                let text = lines(random, 10);
                paths.push(cached.write(&format!("{name}/subagents/agent-a{session}.jsonl"), text));
            }
            if random.below(3) == 0 {
                let text = text_of_result(random);
                paths.push(cached.write(&format!("{name}/tool-results/t1.txt"), text));
            }
        }
    }
    (cached, paths)
}

fn text_of_result(random: &mut Random) -> String {
    text(random).replace("\\n", "\n")
}

/// Changes a file in one of the ways in which files change.
fn change(random: &mut Random, cached: &mut Cached, paths: &[PathBuf]) -> String {
    let path = &paths[random.below(paths.len())];
    let Ok(old) = fs::read(path) else {
        fs::write(path, lines(random, 20)).unwrap();
        cached.age(path);
        return "a file that came back".to_owned();
    };
    let what = random.below(9);
    let mut new = old.clone();
    match what {
        // Two appends, one of which is not ended.
        0 | 1 => new.extend(lines(random, 8).bytes()),
        2 => {
            new.extend(line(random, 17).bytes());
            new.truncate(new.len() - random.below(3));
        }
        // Cut, at a line or anywhere.
        3 => new.truncate(random.below(old.len() + 1)),
        4 => {
            let end = new[..new.len() / 2].iter().rposition(|byte| *byte == b'\n');
            new.truncate(end.map_or(0, |end| end + 1));
        }
        // Changed in the middle, of the same length.
        5 => {
            let text = String::from_utf8(new).unwrap();
            new = text
                .replace("owl", "cat")
                .replace("zebra", "owlet")
                .into_bytes();
        }
        6 => {
            let text = String::from_utf8(new).unwrap();
            new = text.replace("the", "owl").into_bytes();
        }
        // Other lines, of another file.
        7 => new = lines(random, 30).into_bytes(),
        _ => {
            fs::remove_file(path).unwrap();
            if random.below(2) == 0 {
                return "a file that is gone".to_owned();
            }
            new = lines(random, 30).into_bytes();
        }
    }
    // A torn line is completed sometimes.
    if random.below(2) == 0 && !new.ends_with(b"\n") && what == 2 {
        new.push(b'\n');
    }
    if random.below(4) == 0 {
        // In place of the file, with its time.
        let time = fs::metadata(path).and_then(|found| found.modified());
        let temporary = path.with_extension("tmp");
        fs::write(&temporary, &new).unwrap();
        fs::rename(&temporary, path).unwrap();
        match time {
            Ok(time) => File::options()
                .append(true)
                .open(path)
                .unwrap()
                .set_modified(time)
                .unwrap(),
            Err(_) => cached.age(path),
        }
    } else {
        fs::write(path, &new).unwrap();
        if random.below(5) > 0 {
            cached.age(path);
        }
    }
    format!("change {what} of {}", path.display())
}

/// Damages the filters.
fn damage(random: &mut Random, cached: &Cached) -> String {
    let sidecars = cached.sidecars();
    let Some(path) = sidecars.get(random.below(sidecars.len().max(1))) else {
        return String::new();
    };
    let mut bytes = fs::read(path).unwrap();
    let what = random.below(6);
    match what {
        0 => bytes.truncate(random.below(bytes.len() + 1)),
        1 => {
            let at = random.below(bytes.len().max(1));
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        2 => bytes = fs::read(&sidecars[random.below(sidecars.len())]).unwrap(),
        3 => bytes
            .splice(..bytes.len().min(22), *b"transcript filters 0 9")
            .for_each(drop),
        4 => bytes.extend(b"more"),
        _ => {
            return fs::remove_file(path)
                .map(|()| "removed".to_owned())
                .unwrap();
        }
    }
    fs::write(path, bytes).unwrap();
    format!("damage {what}")
}

#[test]
fn filters_change_no_answer() {
    let (mut all, mut some) = (0, 0);
    for seed in 0..60 {
        let random = &mut Random(seed);
        let (mut cached, paths) = tree(random);
        let mut what = "new".to_owned();
        for step in 0..14 {
            for _ in 0..4 {
                let query = query(random);
                let (read, less) = cached.check(&query, &format!("seed {seed} step {step} {what}"));
                (all, some) = (all + read, some + less);
            }
            what = match random.below(3) {
                0 => damage(random, &cached),
                _ => change(random, &mut cached, &paths),
            };
        }
    }
    // The filters were used, although most terms are in most files.
    assert!(some < all / 10 * 9, "{some} of {all}");
}

#[test]
fn large_files_have_a_filter_for_each_piece() {
    let mut cached = Cached::new();
    let filler = "lorem ipsum ".repeat(2_000);
    let entry = |number: usize, text: &str| {
        format!(
            "{{\"type\":\"user\",\"uuid\":\"u{number}\",\"message\":{{\"content\":\"{text} {filler}\"}}}}\n"
        )
    };
    // About 6 MiB, with one word in each MiB.
    let word = |number: usize| format!("word{}x", number / 40);
    let mut text: String = (0..260)
        .map(|number| entry(number, &word(number)))
        .collect();
    let path = cached.write("-p/s.jsonl", &text);
    for query in [
        "lorem", "word0x", "word3x", "word6x", "word9x", "word3x", "/ord5./",
    ] {
        cached.check(query, "large");
    }
    let (all, some) = cached.check("word3x", "large");
    assert!(some > 0 && some < all / 2, "{some} of {all}");
    assert_eq!(cached.check("word9x", "large").1, 0);
    // Appended lines get a filter, and the rest is not read again.
    for number in 260..420 {
        text += &entry(number, &word(number));
        if number % 7 == 0 {
            fs::write(&path, &text).unwrap();
            cached.age(&path);
            let (all, some) = cached.check(&word(number), "appended");
            assert!(some < all / 2, "{some} of {all}");
        }
    }
    assert_eq!(cached.check("word99x", "appended").1, 0);
    let len: u64 = cached
        .sidecars()
        .iter()
        .map(|path| fs::metadata(path).unwrap().len())
        .sum();
    assert!(len < 200 << 10, "{len}");
    // A change in the middle changes the length or the time.
    let changed = text.replace("word3x", "word9x");
    fs::write(&path, &changed).unwrap();
    cached.age(&path);
    cached.check("word9x", "changed");
    cached.check("word3x", "changed");
}

/// Times of content can be set; the time of a change of the file itself cannot.
#[cfg(unix)]
#[test]
fn a_change_that_keeps_length_and_time_is_seen() {
    use std::os::unix::fs::MetadataExt;
    let mut cached = Cached::new();
    let text = lines(&mut Random(5), 30)
        + "{\"type\":\"user\",\"uuid\":\"u\",\"message\":{\"content\":\"heron\"}}\n";
    let path = cached.write("-p/s.jsonl", &text);
    cached.check("heron", "new");
    assert_eq!(cached.check("egret", "new").1, 0, "the filters are used");
    let before = fs::metadata(&path).unwrap();
    fs::write(&path, text.replace("heron", "egret")).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(before.modified().unwrap()).unwrap();
    let after = fs::metadata(&path).unwrap();
    let seen_by_others = |of: &fs::Metadata| (of.ino(), of.len(), of.modified().unwrap());
    assert_eq!(seen_by_others(&before), seen_by_others(&after));
    cached.check("egret", "changed in place");
    cached.check("heron", "changed in place");
}

/// A cache that trusts length and time: it returns the first answer for them.
#[cfg(unix)]
#[derive(Default)]
struct Naive(std::collections::HashMap<(u64, SystemTime), Vec<String>>);

#[cfg(unix)]
impl Naive {
    fn search(&mut self, cached: &Cached, path: &Path) -> Vec<String> {
        let found = fs::metadata(path).unwrap();
        let state = (found.len(), found.modified().unwrap());
        let read = || cached.search("egret", &SearchOptions::new()).0;
        self.0.entry(state).or_insert_with(read).clone()
    }
}

/// The last of each case says whether a cache that trusts length and time is wrong, so that the case
/// needs more than these.
#[cfg(unix)]
#[test]
fn whatever_happens_to_a_file_is_seen() {
    let entry =
        |text: &str| format!("{{\"type\":\"user\",\"message\":{{\"content\":\"{text}\"}}}}");
    let old = [entry("lark"), entry("heron"), entry("owl"), String::new()].join("\n");
    let changed = old.replace("heron", "egret");
    let longer = format!("{old}{}\n", entry("egret"));
    let unfinished = format!("{old}{}", entry("egret"));
    let shorter = entry("egret") + "\n";
    let both = format!("{changed}{}\n", entry("owl"));
    let windows = longer.replace('\n', "\r\n");
    let cases = [
        ("replaced", &changed, true, true, true),
        ("edited in place", &changed, false, true, true),
        (
            "edited in place, with another time",
            &changed,
            false,
            false,
            false,
        ),
        ("appended, with the old time", &longer, false, true, false),
        ("appended", &longer, false, false, false),
        ("appended without an end", &unfinished, false, false, false),
        ("cut", &shorter, false, true, false),
        ("replaced by a longer file", &both, true, true, false),
        ("overwritten by a longer file", &both, false, false, false),
        ("with other line ends", &windows, false, false, false),
    ];
    for (what, new, is_replaced, keeps_time, is_naive_wrong) in cases {
        let (mut cached, mut naive) = (Cached::new(), Naive::default());
        let path = cached.write("-p/s.jsonl", &old);
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        cached.check("egret", what);
        assert_eq!(cached.check("egret", what).1, 0, "{what}: filters are used");
        naive.search(&cached, &path);
        if is_replaced {
            fs::rename(&path, path.with_extension("old")).unwrap();
        }
        fs::write(&path, new).unwrap();
        // Else it looks as if it was being written, so that what is known is used.
        if keeps_time {
            let file = File::options().append(true).open(&path).unwrap();
            file.set_modified(time).unwrap();
        }
        let expected = cached.search("egret", &SearchOptions::new()).0;
        assert!(expected.len() > 1, "{what}: found by a scan");
        assert_eq!(
            naive.search(&cached, &path) != expected,
            is_naive_wrong,
            "{what}"
        );
        cached.check("egret", what);
        cached.check("heron", what);
        // The unfinished line is completed.
        fs::write(&path, format!("{new}\n{}\n", entry("magpie"))).unwrap();
        cached.age(&path);
        for word in ["magpie", "egret", "heron"] {
            cached.check(word, what);
        }
    }
}

#[test]
fn a_line_is_found_as_soon_as_it_is_appended_without_reading_the_rest() {
    let mut cached = Cached::new();
    let filler = "lorem ipsum ".repeat(2_000);
    let entry =
        |text: &str| format!("{{\"type\":\"user\",\"message\":{{\"content\":\"{text}\"}}}}\n");
    let path = cached.write("-p/s.jsonl", entry(&filler).repeat(180));
    cached.check("nothing", "cold");
    let cached = &cached;
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    cached.search("word1x", &cached.options());
                }
            });
        }
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                // Users clean up.
                std::thread::sleep(Duration::from_millis(20));
                let _ = fs::remove_dir_all(cached.folder());
            }
        });
        for number in 0..60 {
            let mut file = File::options().append(true).open(&path).unwrap();
            file.write_all(entry(&format!("word{number}x")).as_bytes())
                .unwrap();
            let found = cached
                .search(&format!("word{number}x"), &cached.options())
                .0;
            assert_eq!(found.len(), 2, "{number}: {found:?}");
        }
        is_done.store(true, Ordering::Relaxed);
    });
    // Undisturbed, only what is new is read.
    cached.search("nothing", &cached.options());
    for number in 60..90 {
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(entry(&format!("word{number}x")).as_bytes())
            .unwrap();
        let (found, read) = cached.search(&format!("word{number}x"), &cached.options());
        assert_eq!(found.len(), 2, "{number}: {found:?}");
        assert!(read < 2 << 20, "{number}: {read}");
    }
}

#[test]
fn a_file_of_filters_that_is_cut_or_changed_at_any_byte_changes_no_answer() {
    let mut cached = Cached::new();
    for (name, text) in [("a", "owl permission"), ("b", "zebra"), ("c", "owl")] {
        let line = format!(
            "{{\"type\":\"user\",\"uuid\":\"{name}\",\"message\":{{\"content\":\"{text}\"}}}}\n"
        );
        cached.write(&format!("-p/{name}.jsonl"), line);
    }
    cached.check("owl", "cold");
    let path = cached.sidecars().pop().unwrap();
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        fs::write(&path, &whole[..at]).unwrap();
        cached.check("owl", "cut");
        assert_eq!(cached.check("lark", "cut").1, 0, "it is made again");
        let mut changed = whole.clone();
        changed[at] ^= 1 << (at % 8);
        fs::write(&path, &changed).unwrap();
        cached.check("permission", "changed");
        cached.check("owl", "changed");
    }
    let end = fs::metadata(&path).unwrap().len();
    assert!(end < 2 * whole.len() as u64, "{end}");
}

#[test]
fn searches_at_the_same_time_keep_the_filters_whole() {
    let random = &mut Random(7);
    let mut cached = Cached::new();
    for session in 0..40 {
        let text = lines(random, 30);
        cached.write(&format!("-p{}/s{session}.jsonl", session % 2), text);
    }
    let expected = cached.search("owl", &SearchOptions::new()).0;
    for round in 0..8 {
        let _ = fs::remove_dir_all(cached.folder());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..3 {
                        assert_eq!(
                            cached.search("owl", &cached.options()).0,
                            expected,
                            "{round}"
                        );
                    }
                });
            }
        });
        let (all, some) = cached.check("lark", "after all");
        assert!(some < all / 10, "{some} of {all}");
    }
}

#[test]
fn deleted_files_leave_the_filters() {
    let random = &mut Random(3);
    let mut cached = Cached::new();
    for session in 0..200 {
        let text = lines(random, 60);
        cached.write(&format!("-p/s{session}.jsonl"), text);
    }
    cached.write("-q/s.jsonl", "");
    cached.check("owl", "cold");
    let len = |cached: &Cached| -> u64 {
        let paths = cached.sidecars();
        paths
            .iter()
            .map(|path| fs::metadata(path).unwrap().len())
            .sum()
    };
    let before = len(&cached);
    for session in 0..190 {
        fs::remove_file(cached.store.root().join(format!("-p/s{session}.jsonl"))).unwrap();
    }
    cached.write("-p/new.jsonl", lines(random, 10));
    cached.check("owl", "after most files are gone");
    assert!(len(&cached) < before / 4, "{} of {before}", len(&cached));
    fs::remove_dir_all(cached.store.root().join("-p")).unwrap();
    cached.write("-r/s.jsonl", lines(random, 10));
    cached.check("owl", "after a folder is gone");
    assert!(len(&cached) < before / 40, "{} of {before}", len(&cached));
}

#[test]
fn a_cache_folder_that_cannot_be_used_is_not_an_error() {
    let mut cached = Cached::new();
    cached.write("-p/s.jsonl", lines(&mut Random(1), 30));
    fs::write(cached.cache.path().join("transcript"), "a file").unwrap();
    cached.check("owl", "a file is in the way");
    fs::remove_file(cached.cache.path().join("transcript")).unwrap();
    cached.check("owl", "new");
    let path = cached.sidecars().pop().unwrap();
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    cached.check("owl", "a folder is in the way");
    assert!(path.is_dir());
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_filters_and_links_are_not_followed() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let mut cached = Cached::new();
    cached.write("-p/s.jsonl", lines(&mut Random(1), 30));
    cached.check("owl", "new");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = cached.sidecars().pop().unwrap();
    assert_eq!((mode(&cached.folder()), mode(&path)), (0o700, 0o600));
    let other = cached.cache.path().join("other");
    fs::write(&other, "not ours").unwrap();
    fs::remove_file(&path).unwrap();
    symlink(&other, &path).unwrap();
    cached.check("owl", "a link");
    assert_eq!(fs::read(&other).unwrap(), b"not ours");
}
