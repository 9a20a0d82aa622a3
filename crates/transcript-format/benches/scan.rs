//! Framing and scan over 16 MiB of generated sessions, in memory.

use divan::Bencher;
use divan::counter::BytesCount;
use transcript_format::lines::{Framed, Framer};
use transcript_format::scan::Scanner;
use transcript_testkit::generate;

fn main() {
    divan::main();
}

fn sessions() -> Vec<u8> {
    let mut bytes = Vec::new();
    for seed in 0.. {
        bytes.extend(generate::session(seed));
        bytes.push(b'\n');
        if bytes.len() > 16 << 20 {
            break;
        }
    }
    bytes
}

#[divan::bench]
fn frame(bencher: Bencher<'_, '_>) {
    let bytes = sessions();
    bencher
        .counter(BytesCount::new(bytes.len()))
        .bench_local(|| {
            let mut framer = Framer::new();
            let mut rest = &bytes[..];
            let mut lines = 0;
            while framer.next(&mut rest).is_some() {
                lines += 1;
            }
            lines
        });
}

fn scan(bencher: Bencher<'_, '_>, new: fn() -> Scanner) {
    let bytes = sessions();
    bencher
        .counter(BytesCount::new(bytes.len()))
        .bench_local(|| {
            let (mut framer, mut scanner) = (Framer::new(), new());
            let mut rest = &bytes[..];
            let mut good = 0;
            while let Some(framed) = framer.next(&mut rest) {
                if let Framed::Line(line) = framed {
                    good += usize::from(scanner.scan(line.bytes).is_ok());
                }
            }
            good
        });
}

#[divan::bench]
fn frame_and_scan(bencher: Bencher<'_, '_>) {
    scan(bencher, Scanner::new);
}

#[divan::bench]
fn frame_and_scan_without_simd(bencher: Bencher<'_, '_>) {
    scan(bencher, Scanner::without_simd);
}
