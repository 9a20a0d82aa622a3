//! Files as the disk without secrets shows them.

use std::fs;
use std::io::Write;
use std::sync::Arc;

use transcript_redact::{RedactedDisk, Redactor, mask};
use transcript_storage::{ReadDisk, RealDisk};

use crate::samples::Random;

const SECRET: &str = concat!("gh", "p_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6");
const PIECE: usize = 1 << 20;

fn read_all(disk: &RedactedDisk, path: &std::path::Path) -> String {
    let file = disk.open_to_read(path).unwrap();
    let mut bytes = vec![0; file.metadata().unwrap().len as usize + 9];
    let read = file.fill(0, &mut bytes).unwrap();
    assert_eq!(read, bytes.len() - 9, "the length is that of what is shown");
    bytes.truncate(read);
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_file_reads_the_same_in_any_parts_and_no_part_has_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let (mut text, mut shown) = (String::new(), String::new());
    let mut expected = Vec::new();
    let token = mask("GitHub token", false);
    // Some secrets, and one across the end of each piece.
    for line in 0..9_000 {
        let mut filler = "word ".repeat(60 + line % 37);
        let at = text.len() + 9;
        let across = (at / PIECE + 1) * PIECE - 20;
        let is_near = across - at < 2_000;
        if is_near {
            filler = " ".repeat(across - at);
        }
        let has_secret = is_near || line % 500 == 0;
        if has_secret {
            expected.push((
                line as u64 + 1,
                (at + filler.len()) as u64,
                SECRET.len() as u64,
            ));
        }
        for (text, secret) in [(&mut text, SECRET), (&mut shown, token.as_str())] {
            let secret = if has_secret { secret } else { "" };
            text.push_str(&format!("{{\"text\":\"{filler}{secret}\"}}\n"));
        }
    }
    let is_across =
        |(_, at, _): &&(u64, u64, u64)| *at as usize / PIECE != (*at as usize + 39) / PIECE;
    assert!(expected.iter().filter(is_across).count() >= 2);
    fs::write(&path, &text).unwrap();
    let disk = RedactedDisk::new(Arc::new(RealDisk), Redactor::new());
    assert!(read_all(&disk, &path) == shown);
    let found = disk.redactions();
    let places: Vec<_> = found
        .secrets
        .iter()
        .map(|found| (found.line, found.offset, found.len))
        .collect();
    assert_eq!(places, expected);
    assert_eq!(
        (found.files, found.lines, found.bytes),
        (1, 9_000, text.len() as u64)
    );
    assert_eq!(disk.metadata(&path).unwrap().len, shown.len() as u64);
    let file = disk.open_to_read(&path).unwrap();
    let mut random = Random::new(1);
    for _ in 0..2_000 {
        let near = shown.find("[redacted").unwrap();
        let from = if random.below(2) == 0 {
            near.saturating_sub(40) + random.below(80)
        } else {
            random.below(shown.len())
        };
        let mut part = vec![0; random.below(3_000)];
        let read = file.read_at(from as u64, &mut part).unwrap();
        assert_eq!(read, part.len().min(shown.len() - from));
        assert!(part[..read] == shown.as_bytes()[from..from + read]);
    }
    // Bytes that are appended later were not searched, and are not shown.
    fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(SECRET.as_bytes())
        .unwrap();
    assert_eq!(file.metadata().unwrap().len, shown.len() as u64);
    assert_eq!(file.read_at(shown.len() as u64, &mut [0; 9]).unwrap(), 0);
}

#[test]
fn a_live_file_shows_what_is_appended_without_its_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    fs::write(&path, "").unwrap();
    let disk = RedactedDisk::live(Arc::new(RealDisk), Redactor::new());
    let file = disk.open_to_read(&path).unwrap();
    let line = format!("{{\"text\":\"use {SECRET} and DB_PASSWORD='a b c1' at /home/ada\"}}\n");
    let masked = "{\"text\":\"use [redacted: GitHub token] and DB_PASSWORD='[redacted: password]' at /home/ada\"}\n";
    let mut writer = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let mut whole = String::new();
    for round in 0..40 {
        // A line that arrives in two parts, the first of which ends within a secret.
        let cut = 20 + round % 30;
        for part in [&line[..cut], &line[cut..]] {
            writer.write_all(part.as_bytes()).unwrap();
            let len = disk.metadata(&path).unwrap().len;
            let mut bytes = vec![0; len as usize];
            assert_eq!(file.fill(0, &mut bytes).unwrap(), bytes.len());
            let text = String::from_utf8(bytes).unwrap();
            assert!(
                text.starts_with(&whole),
                "lines that are complete do not change"
            );
            assert!(!text[..whole.len()].contains(&SECRET[..20]));
            if part.ends_with('\n') {
                whole.push_str(masked);
                assert_eq!(text, whole);
            }
        }
    }
    assert_eq!(disk.redactions().secrets.len(), 80);
    // One that was rewritten in place and is longer now is not taken for one that has grown.
    let longer = line.replace("use", "please use").repeat(50);
    fs::write(&path, longer).unwrap();
    let expected = masked.replace("use", "please use").repeat(50);
    assert_eq!(read_all(&disk, &path), expected);
    // A file that is replaced, or changed in place, is searched again.
    fs::write(&path, line.replace("use", "see")).unwrap();
    assert_eq!(read_all(&disk, &path), masked.replace("use", "see"));
    assert_eq!(disk.redactions().secrets.len(), 2);
}

#[test]
fn a_line_of_many_pieces_is_searched_like_a_short_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let mut random = Random::new(5);
    let mut base64 = |len: usize| -> String {
        const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        (0..len)
            .map(|_| char::from(*random.pick(LETTERS)))
            .collect()
    };
    // A key and a value that are longer than a piece, and a token across the end of one.
    let key: Vec<String> = (0..40_000).map(|_| base64(64)).collect();
    let key = format!(
        "-----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----\\n",
        key.join("\\n")
    );
    let filler = "some words ".repeat(300_000);
    let across = &filler[..PIECE * 3 - 15 - (PIECE * 3 - 15) % 11];
    let value = base64(3 * PIECE);
    let text = format!(
        "{{\"a\":\"{across}{SECRET} {filler}{key}{filler}\",\"client_secret\":\"{value}\",\"b\":\"{filler}\"}}\n"
    );
    fs::write(&path, &text).unwrap();
    let disk = RedactedDisk::new(Arc::new(RealDisk), Redactor::new());
    let shown = read_all(&disk, &path);
    let masked = format!(
        "{{\"a\":\"{across}[redacted: GitHub token] {filler}[redacted: private key]\\n{filler}\",\"client_secret\":\"[redacted: secret]\",\"b\":\"{filler}\"}}\n"
    );
    assert!(
        shown == masked,
        "{} bytes, expected {}",
        shown.len(),
        masked.len()
    );
}

#[test]
fn text_of_several_lines_is_searched_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b1.txt");
    let lines: Vec<String> = (0..20)
        .map(|at| format!("{at:02}aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6aB3dE6gH9jK2mN5pQ8sT1vW4yZ"))
        .collect();
    let text = format!(
        "a \"quote\"\n-----BEGIN EC PRIVATE KEY-----\n{}\n-----END EC PRIVATE KEY-----\nDB_PASS='x\"y z1'\n",
        lines.join("\n")
    );
    fs::write(&path, text).unwrap();
    let disk = RedactedDisk::new(Arc::new(RealDisk), Redactor::new());
    assert_eq!(
        read_all(&disk, &path),
        "a \"quote\"\n[redacted: private key]\nDB_PASS='[redacted: password]'\n"
    );
    let found = disk.redactions().secrets;
    assert_eq!(
        found.iter().map(|found| found.line).collect::<Vec<_>>(),
        [2, 24]
    );
}
