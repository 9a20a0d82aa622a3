//! Measures the search of files: `cargo run --release -p transcript-redact --example speed -- FILE...`

use std::io;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use transcript_redact::{Content, Redactor};

fn main() -> io::Result<()> {
    let redactor = Redactor::new();
    _ = redactor.find(b"");
    for path in std::env::args_os().skip(1) {
        let file = std::fs::File::open(&path)?;
        let len = file.metadata()?.len();
        for threads in [1, 2] {
            let start = Instant::now();
            let read = |offset: u64, buffer: &mut [u8]| -> io::Result<usize> {
                let mut done = 0;
                while done < buffer.len() {
                    match file.read_at(&mut buffer[done..], offset + done as u64)? {
                        0 => break,
                        read => done += read,
                    }
                }
                Ok(done)
            };
            let scan = redactor.scan(&read, len, Content::Lines, threads, None)?;
            let seconds = start.elapsed().as_secs_f64();
            println!(
                "{} threads: {:.0} MB/s, {} secrets, {} left, {} lines",
                threads,
                len as f64 / 1e6 / seconds,
                scan.secrets.len(),
                scan.left.len(),
                scan.lines
            );
        }
    }
    Ok(())
}
