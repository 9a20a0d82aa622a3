//! Index, links and path of one file made of many generated sessions.

use std::io::Write;

use divan::Bencher;
use tempfile::NamedTempFile;
use transcript_reader::{Index, Source};
use transcript_resume::{Policy, Tree};
use transcript_testkit::generate;

fn main() {
    divan::main();
}

/// A file of 16 MiB and the source over it.
fn source() -> (NamedTempFile, Source) {
    let mut bytes = Vec::new();
    for seed in 0.. {
        bytes.extend(generate::session(seed));
        bytes.push(b'\n');
        if bytes.len() > 16 << 20 {
            break;
        }
    }
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(&bytes).expect("room for 16 MiB");
    let source = Source::open(file.path()).expect("a regular file");
    (file, source)
}

#[divan::bench]
fn index(bencher: Bencher<'_, '_>) {
    let (_file, source) = source();
    bencher.bench_local(|| Index::load(&source));
}

#[divan::bench]
fn links(bencher: Bencher<'_, '_>) {
    let (_file, source) = source();
    let index = Index::load(&source).expect("a readable file");
    bencher.bench_local(|| Tree::new(&index, Policy::Vendor).nodes().count());
}

#[divan::bench]
fn leaf_and_path(bencher: Bencher<'_, '_>) {
    let (_file, source) = source();
    let index = Index::load(&source).expect("a readable file");
    let tree = Tree::new(&index, Policy::Vendor);
    bencher.bench_local(|| tree.path().entries.len());
}
