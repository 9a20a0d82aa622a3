//! Requests: how many there are, and what is left when one of them fails.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use transcript_objects::ObjectDisk;
use transcript_storage::{Disk, ReadDisk};
use transcript_testkit::rng::Rng;

use crate::stores::{self, Faulty};

/// Longer than one request may write.
const LONG: usize = 20 << 20;

fn write(disk: &ObjectDisk, path: &Path) -> std::io::Result<()> {
    let mut file = disk.new_file(path)?;
    file.write_all(&vec![7; LONG])?;
    file.keep(path)
}

#[test]
fn a_long_object_is_there_as_a_whole_or_not_at_all_whichever_request_fails() {
    let path = Path::new(stores::BUCKET).join("long");
    for is_done_before in [false, true] {
        for fail in 1.. {
            let store = Arc::new(Faulty::new(fail, is_done_before));
            let disk = ObjectDisk::new(Arc::clone(&store) as _, Path::new(stores::BUCKET));
            let written = write(&disk, &path);
            let is_reached = store.count() >= fail;
            store.heal();
            if let Err(error) = &written {
                assert!(!error.to_string().contains("canary"), "{error}");
            }
            match disk.metadata(&path) {
                Ok(found) => assert_eq!(found.len, LONG as u64),
                Err(_) => assert!(written.is_err()),
            }
            if !is_reached {
                assert!(written.is_ok());
                break;
            }
        }
    }
}

#[test]
fn reads_that_follow_each_other_take_few_requests() {
    let store = Arc::new(Faulty::new(0, false));
    let disk = ObjectDisk::new(Arc::clone(&store) as _, Path::new(stores::BUCKET));
    let path = Path::new(stores::BUCKET).join("long");
    write(&disk, &path).expect("written");
    let before = store.count();
    let file = disk.open_to_read(&path).expect("the object");
    let (mut buffer, mut at) = (vec![0; 4096], 0);
    loop {
        match file.fill(at, &mut buffer).expect("read") {
            0 => break,
            read => at += read as u64,
        }
    }
    assert_eq!(at, LONG as u64);
    // One for its properties, and then 64 KiB, 128 KiB … 8 MiB.
    assert!(store.count() - before <= 12, "{}", store.count() - before);
    // The end of a pack has its index, which is read in three parts.
    let before = store.count();
    let file = disk.open_to_read(&path).expect("the object");
    for back in [9, 17, 5000] {
        file.fill(LONG as u64 - back, &mut buffer[..8])
            .expect("read");
    }
    assert_eq!(store.count() - before, 2);
}

/// Readers of many sessions jump around in a pack. No byte is asked for twice, and few requests are made.
#[test]
fn reads_in_any_order_take_few_requests_and_have_the_bytes_of_the_object() {
    let store = Arc::new(Faulty::new(0, false));
    let disk = ObjectDisk::new(Arc::clone(&store) as _, Path::new(stores::BUCKET));
    let path = Path::new(stores::BUCKET).join("long");
    let mut rng = Rng::new(3);
    let bytes: Vec<u8> = (0..LONG).map(|_| rng.next_u64().to_le_bytes()[0]).collect();
    let mut file = disk.new_file(&path).expect("a new file");
    file.write_all(&bytes).expect("written");
    file.keep(&path).expect("kept");
    let before = store.count();
    let file = disk.open_to_read(&path).expect("the object");
    for _ in 0..3_000 {
        let at = rng.below(LONG);
        let mut buffer = vec![0; rng.range(1, 100_000)];
        let read = file.fill(at as u64, &mut buffer).expect("read");
        assert_eq!(read, buffer.len().min(LONG - at), "at {at}");
        assert!(buffer[..read] == bytes[at..at + read], "at {at}");
    }
    let requests = store.count() - before;
    assert!(requests < 120, "{requests}");
}
