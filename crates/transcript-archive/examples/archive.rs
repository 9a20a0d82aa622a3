//! Captures and restores, and says how fast: `archive capture ROOT ARCHIVE`, `archive restore ARCHIVE ROOT`.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use transcript_archive::{Archive, CaptureOptions, RestoreOptions};

#[expect(clippy::print_stdout, reason = "an example prints what it did")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let start = Instant::now();
    let bytes = match &arguments[..] {
        [action, root, archive] if action == "capture" => {
            let mut archive = Archive::open_or_create(Path::new(archive))?;
            let captured = archive.capture(Path::new(root), &CaptureOptions::new())?;
            println!("{captured:?}");
            captured.bytes
        }
        [action, archive, root] if action == "restore" => {
            let archive = Archive::open(Path::new(archive))?;
            let restored = archive.restore(Path::new(root), &RestoreOptions::new())?;
            println!("{} files, {:?}", restored.files, restored.problems);
            restored.bytes
        }
        _ => return Err("archive capture ROOT ARCHIVE, or archive restore ARCHIVE ROOT".into()),
    };
    let seconds = start.elapsed().as_secs_f64();
    println!("{seconds:.3} s, {:.0} MB/s", bytes as f64 / 1e6 / seconds);
    Ok(())
}
