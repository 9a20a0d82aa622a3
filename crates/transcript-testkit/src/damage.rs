//! Damage to a session from outside: torn lines, lost lines, bad bytes, wrong links.

use serde_json::{Value, json};

use crate::rng::Rng;

/// Every kind of damage, by the name that [`damage`] reports.
pub const KINDS: [&str; 20] = [
    "cut tail",
    "drop line",
    "repeat line",
    "glue lines",
    "torn prefix",
    "nul run",
    "garbage line",
    "flip byte",
    "bad utf-8",
    "lone surrogate",
    "swap lines",
    "new parent",
    "lost parent",
    "cycle",
    "no message",
    "odd uuid",
    "byte order mark",
    "carriage return",
    "blank line",
    "control byte",
];

/// Damages a session in one to four ways. Returns it and the names of the kinds of damage, in order.
///
/// Equal arguments give equal results.
#[must_use]
pub fn damage(bytes: &[u8], seed: u64) -> (Vec<u8>, Vec<&'static str>) {
    // The session may have been generated from the same seed; its random numbers must differ.
    let mut rng = Rng::new(seed ^ 0x0DA3_A6ED);
    let mut out = bytes.to_vec();
    let mut done = Vec::new();
    for _ in 0..rng.range(1, 4) {
        let kind = *rng.pick(&KINDS);
        if let Some(damaged) = apply(&out, kind, &mut rng) {
            out = damaged;
            done.push(kind);
        }
    }
    (out, done)
}

/// Does one kind of damage at a random place. Returns `None` when the session has no place for it.
#[must_use]
pub fn apply(bytes: &[u8], kind: &str, rng: &mut Rng) -> Option<Vec<u8>> {
    if kind == "cut tail" {
        return cut_tail(bytes, rng);
    }
    // The lines keep their newlines, so that removing one glues two lines together.
    let mut lines: Vec<Vec<u8>> = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    if lines.is_empty() {
        return None;
    }
    let at = rng.below(lines.len());
    match kind {
        "drop line" => _ = lines.remove(at),
        "repeat line" => {
            let to = *rng.pick(&[at + 1, lines.len(), rng.clone().range(at, lines.len())]);
            let line = terminated(&lines[at]);
            end_line_before(&mut lines, to);
            lines.insert(to, line);
        }
        "glue lines" => _ = lines[at].pop_if(|byte| *byte == b'\n')?,
        "torn prefix" => {
            let length = rng.below(lines[at].len());
            lines[at].truncate(length);
        }
        "nul run" => {
            let nuls = vec![0; *rng.pick(&[1, 7, 64, 512, 5_000])];
            match rng.below(3) {
                // Before a line, as a line of its own, or over the bytes of a line.
                0 => _ = lines[at].splice(0..0, nuls),
                1 => {
                    end_line_before(&mut lines, at);
                    lines.insert(at, [nuls, b"\n".to_vec()].concat());
                }
                _ => {
                    let from = rng.below(lines[at].len());
                    let to = lines[at].len().saturating_sub(1).min(from + nuls.len());
                    lines[at].get_mut(from..to)?.fill(0);
                }
            }
        }
        "garbage line" => {
            let garbage: [&[u8]; 10] = [
                b"not json\n",
                b"{\n",
                b"}\n",
                b"null\n",
                b"[]\n",
                b"42\n",
                b"\"text\"\n",
                b"{}\n",
                b"{\"type\":\"user\"}\n",
                b"\x1f\x8b\x08\x00 \xfe\xff\n",
            ];
            end_line_before(&mut lines, at);
            lines.insert(at, rng.pick(&garbage).to_vec());
        }
        "flip byte" => {
            let place = rng.below(lines[at].len());
            lines[at][place] ^= 1 << rng.below(8);
        }
        "bad utf-8" => {
            let bad: [&[u8]; 5] = [
                b"\xff",
                b"\xc3",
                b"\xe2\x80",
                b"\xed\xa0\xbd\xed\xb8\x80",
                b"\xc0\x80",
            ];
            let place = in_string(&lines[at], rng)?;
            lines[at].splice(place..place, rng.pick(&bad).iter().copied());
        }
        "lone surrogate" => {
            let bad = ["\\ud83d", "\\ude80", "\\ude80\\ud83d", "\\uD83Dx"];
            let place = in_string(&lines[at], rng)?;
            lines[at].splice(place..place, rng.pick(&bad).bytes());
        }
        "control byte" => {
            let place = in_string(&lines[at], rng)?;
            lines[at].insert(place, *rng.pick(&[0x00, 0x01, 0x09, 0x0D, 0x1B, 0x1F]));
        }
        "swap lines" => {
            let other = if rng.one_in(2) {
                at + 1
            } else {
                rng.below(lines.len())
            };
            if other == at || other >= lines.len() {
                return None;
            }
            end_line_before(&mut lines, usize::MAX);
            lines.swap(at, other);
        }
        "new parent" | "lost parent" | "cycle" => relink(&mut lines, kind, rng)?,
        "no message" => {
            let with_message = |entry: &Value| entry["message"].is_object();
            let (at, mut entry) = entry_where(&lines, rng, &with_message)?;
            match rng.below(4) {
                0 => entry["message"] = Value::Null,
                1 => _ = entry.as_object_mut()?.remove("message"),
                2 => entry["message"]["content"] = Value::Null,
                _ => _ = entry["message"].as_object_mut()?.remove("content"),
            }
            lines[at] = line(&entry);
        }
        "odd uuid" => {
            let (at, mut entry) = entry_where(&lines, rng, &|entry| entry["uuid"].is_string())?;
            let odd = [
                Value::Null,
                json!(""),
                json!("u1"),
                json!(17),
                json!(false),
                json!({"a": 1}),
            ];
            if rng.one_in(4) {
                entry.as_object_mut()?.remove("uuid");
            } else {
                entry["uuid"] = rng.pick(&odd).clone();
            }
            lines[at] = line(&entry);
        }
        "byte order mark" => {
            // At the start of the file, or further down, as in joined files.
            let at = if rng.one_in(4) { at } else { 0 };
            lines[at].splice(0..0, *b"\xef\xbb\xbf");
        }
        "carriage return" => {
            let end = lines[at].strip_suffix(b"\n")?.len();
            lines[at].insert(end, b'\r');
        }
        "blank line" => {
            end_line_before(&mut lines, at);
            lines.insert(at, rng.pick(&["\n", " \t\n", "\r\n"]).as_bytes().to_vec());
        }
        _ => return None,
    }
    let out = lines.concat();
    (out != bytes).then_some(out)
}

/// Truncates the file within the last line, or sometimes further up.
fn cut_tail(bytes: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let last = bytes[..bytes.len().checked_sub(1)?]
        .iter()
        .rposition(|byte| *byte == b'\n');
    let from = if rng.one_in(5) {
        0
    } else {
        last.map_or(0, |newline| newline + 1)
    };
    Some(bytes[..rng.range(from, bytes.len() - 1)].to_vec())
}

/// Gives some entries wrong parents.
fn relink(lines: &mut [Vec<u8>], kind: &str, rng: &mut Rng) -> Option<()> {
    let linked = |entry: &Value| entry["uuid"].is_string() && entry.get("parentUuid").is_some();
    let (at, mut entry) = entry_where(lines, rng, &linked)?;
    let (other_at, mut other) = entry_where(lines, rng, &linked)?;
    match kind {
        "new parent" => entry["parentUuid"] = other["uuid"].clone(),
        "lost parent" => entry["parentUuid"] = json!(format!("{:08x}-lost", rng.next_u64() >> 32)),
        _ if at == other_at => entry["parentUuid"] = entry["uuid"].clone(),
        _ => {
            entry["parentUuid"] = other["uuid"].clone();
            other["parentUuid"] = entry["uuid"].clone();
            lines[other_at] = line(&other);
        }
    }
    lines[at] = line(&entry);
    Some(())
}

/// Returns a random line with an entry for which `wanted` is true.
fn entry_where(
    lines: &[Vec<u8>],
    rng: &mut Rng,
    wanted: &dyn Fn(&Value) -> bool,
) -> Option<(usize, Value)> {
    let first = rng.below(lines.len());
    (0..lines.len())
        .map(|step| (first + step) % lines.len())
        .find_map(|at| {
            let entry: Value = serde_json::from_slice(&lines[at]).ok()?;
            (entry.is_object() && wanted(&entry)).then_some((at, entry))
        })
}

fn line(entry: &Value) -> Vec<u8> {
    format!("{entry}\n").into_bytes()
}

fn terminated(line: &[u8]) -> Vec<u8> {
    let mut line = line.strip_suffix(b"\n").unwrap_or(line).to_vec();
    line.push(b'\n');
    line
}

/// Adds the newline of the last line, if it is missing, so that another line can follow.
fn end_line_before(lines: &mut [Vec<u8>], to: usize) {
    if to >= lines.len()
        && let Some(last) = lines.last_mut()
    {
        *last = terminated(last);
    }
}

/// Returns the place of a letter within a string of `line`, not near an escape.
fn in_string(line: &[u8], rng: &mut Rng) -> Option<usize> {
    let first = rng.below(line.len());
    (first..line.len()).chain(0..first).find(|&at| {
        let before = at.checked_sub(1).and_then(|before| line.get(before));
        let quotes = line[..at].iter().filter(|byte| **byte == b'"').count();
        // Lines with escaped quotes are left to chance.
        line[at].is_ascii_lowercase()
            && before.is_some_and(u8::is_ascii_lowercase)
            && quotes % 2 == 1
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::generate::session;

    #[test]
    fn equal_seeds_do_equal_damage() {
        for seed in 0..300 {
            let bytes = session(seed);
            assert_eq!(damage(&bytes, seed), damage(&bytes, seed));
        }
    }

    #[test]
    fn every_kind_of_damage_is_done_in_300_seeds() {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for seed in 0..300 {
            for kind in damage(&session(seed), seed).1 {
                *counts.entry(kind).or_default() += 1;
            }
        }
        println!("{counts:?}");
        for kind in KINDS {
            assert!(
                counts.get(kind).is_some_and(|count| *count >= 10),
                "{kind} is too rare"
            );
        }
    }

    #[test]
    fn nothing_can_be_done_to_an_empty_file_and_little_to_one_byte() {
        for seed in 0..300 {
            assert_eq!(damage(b"", seed), (Vec::new(), Vec::new()));
            for byte in [b"\n", b"{", b"x"] {
                let _ = damage(byte, seed);
            }
        }
    }
}
