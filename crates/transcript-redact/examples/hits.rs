//! Prints what is redacted in files, with the text around it: to classify a rule. Its output contains secrets.
//!
//! `cargo run --release -p transcript-redact --example hits -- FILE...`

use std::io::{self, Write};

use transcript_redact::Redactor;

fn main() -> io::Result<()> {
    let redactor = Redactor::new();
    let mut out = io::stdout().lock();
    for path in std::env::args_os().skip(1) {
        let Ok(bytes) = std::fs::read(&path) else {
            continue;
        };
        let is_transcript = path.to_string_lossy().ends_with(".jsonl");
        let lines = if is_transcript {
            bytes.split(|byte| *byte == b'\n').collect()
        } else {
            vec![&bytes[..]]
        };
        for (number, line) in lines.into_iter().enumerate() {
            for secret in redactor.find(line) {
                let before = String::from_utf8_lossy(
                    &line[secret.range.start.saturating_sub(50)..secret.range.start],
                )
                .into_owned();
                let end = secret.range.end.min(secret.range.start + 70);
                let value = String::from_utf8_lossy(&line[secret.range.start..end]).into_owned();
                let after = String::from_utf8_lossy(
                    &line[secret.range.end..line.len().min(secret.range.end + 20)],
                )
                .into_owned();
                writeln!(
                    out,
                    "{}:{}\t{}\t{:?}\t>>{:?}<<\t{:?}",
                    path.to_string_lossy(),
                    number + 1,
                    secret.kind,
                    before,
                    value,
                    after
                )?;
            }
        }
    }
    Ok(())
}
