//! Where the time goes between a file and a path: `cargo run --release -p transcript-resume
//! --example phases -- SESSION.jsonl`. Prints the median of five rounds for each phase.

#![expect(clippy::print_stdout, reason = "a program")]

use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use transcript_format::lines::{Framed, Framer};
use transcript_format::scan::Scanner;
use transcript_reader::{LoadOptions, Source};
use transcript_resume::{Policy, Tree};

const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args()
        .nth(1)
        .ok_or("usage: phases SESSION.jsonl")?;
    let path = Path::new(&path);
    let bytes = std::fs::metadata(path)?.len();
    let report = |phase: &str, took: Vec<Duration>| {
        let took = median(took);
        let rate = bytes as f64 / took.as_secs_f64() / 1e9;
        println!(
            "{phase:<34} {:>8.1} ms {rate:>6.2} GB/s",
            took.as_secs_f64() * 1e3
        );
    };

    report("read alone, 1 MiB buffer", rounds(|| walk(path, |_| ()))?);
    report("read and frame", rounds(|| walk(path, frame()))?);
    report(
        "read, frame and scan, 1 thread",
        rounds(|| walk(path, scan(Scanner::new())))?,
    );
    report(
        "the same without SIMD",
        rounds(|| walk(path, scan(Scanner::without_simd())))?,
    );
    report("scan only, 1 thread", scan_only(path)?);

    let source = Source::open(path)?;
    for threads in [1, 2] {
        let load = || LoadOptions::new().threads(threads).load(&source).map(drop);
        report(&format!("index, {threads} threads"), rounds(load)?);
    }

    let index = LoadOptions::new().load(&source)?;
    report("links", rounds(|| done(Tree::new(&index, Policy::Vendor)))?);
    let tree = Tree::new(&index, Policy::Vendor);
    report("leaf and path", rounds(|| done(tree.path()))?);
    println!(
        "{} lines, {} entries, {} on the path, {:.1} bytes of index a line",
        index.line_count(),
        index.len(),
        tree.path().entries.len(),
        index.memory() as f64 / index.line_count().max(1) as f64
    );
    Ok(())
}

fn done<T>(_: T) -> Result<(), Box<dyn Error>> {
    Ok(())
}

/// Reads the file in chunks, as the index does.
fn walk(path: &Path, mut take: impl FnMut(&[u8])) -> Result<(), Box<dyn Error>> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        take(&buffer[..read]);
    }
}

fn frame() -> impl FnMut(&[u8]) {
    let mut framer = Framer::new();
    move |mut chunk| while framer.next(&mut chunk).is_some() {}
}

fn scan(mut scanner: Scanner) -> impl FnMut(&[u8]) {
    let mut framer = Framer::new();
    move |mut chunk| {
        while let Some(framed) = framer.next(&mut chunk) {
            if let Framed::Line(line) = framed {
                std::hint::black_box(scanner.scan(line.bytes).is_ok());
            }
        }
    }
}

/// The scan without reading: over 64 MiB of the file, held in memory.
fn scan_only(path: &Path) -> Result<Vec<Duration>, Box<dyn Error>> {
    let mut held = Vec::new();
    File::open(path)?.take(64 << 20).read_to_end(&mut held)?;
    let whole = std::fs::metadata(path)?.len() as f64 / held.len().max(1) as f64;
    let took = rounds(|| {
        let mut scan = scan(Scanner::new());
        scan(&held);
        Ok::<_, Box<dyn Error>>(())
    })?;
    // Told for the whole file, as all other phases.
    Ok(took.into_iter().map(|took| took.mul_f64(whole)).collect())
}

fn rounds<E>(mut work: impl FnMut() -> Result<(), E>) -> Result<Vec<Duration>, E> {
    let round = |_| {
        let start = Instant::now();
        work()?;
        Ok(start.elapsed())
    };
    (0..ROUNDS).map(round).collect()
}

fn median(mut took: Vec<Duration>) -> Duration {
    took.sort_unstable();
    took[took.len() / 2]
}
