//! Measures the search of files: `cargo run --release -p transcript-redact --example speed -- FILE...`

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use transcript_redact::{Content, Redactor};
use transcript_storage::{ReadDisk, RealDisk};

fn main() -> io::Result<()> {
    let redactor = Redactor::new();
    // The search is prepared when it is first used.
    _ = redactor.find(b"");
    let mut out = io::stdout().lock();
    for path in std::env::args_os().skip(1).map(PathBuf::from) {
        let file = RealDisk.open_to_read(&path)?;
        let len = file.metadata()?.len;
        let read = |offset: u64, buffer: &mut [u8]| file.fill(offset, buffer);
        for threads in [1, 2] {
            let start = Instant::now();
            let scan = redactor.scan(
                &read,
                len,
                Content::of(&path),
                NonZeroUsize::new(threads),
                None,
            )?;
            let speed = len as f64 / 1e6 / start.elapsed().as_secs_f64();
            let (secrets, left) = (scan.secrets.len(), scan.left.len());
            let path = path.display();
            writeln!(
                out,
                "{path}: {threads} threads: {speed:.0} MB/s, {secrets} secrets, {left} left"
            )?;
        }
    }
    Ok(())
}
