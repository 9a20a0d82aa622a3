//! The interface for tokio.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use transcript_writer::asynchronous::AsyncWriter;
use transcript_writer::{Draft, ErrorKind, ResumePoint, SyncPolicy, WriterOptions, Written};

struct Session {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Session {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        Self {
            _folder: folder,
            path,
        }
    }

    fn open(&self, options: WriterOptions) -> AsyncWriter {
        let writer = options.create().open(&self.path, ResumePoint::default());
        AsyncWriter::new(writer.unwrap())
    }

    fn entries(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn uuids(entries: &[Value]) -> Vec<String> {
    let uuid = |entry: &Value| entry["uuid"].as_str().unwrap().to_owned();
    entries.iter().map(uuid).collect()
}

fn uuid(written: &Written) -> String {
    written.uuid.as_ref().unwrap().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_of_many_tasks_are_each_written_once_in_an_unbroken_chain() {
    let session = Session::new();
    let writer = session.open(WriterOptions::new().queue_bytes(4_000));
    let tasks: Vec<_> = (0..16)
        .map(|task| {
            let writer = writer.clone();
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                for number in 0..50 {
                    let draft = Draft::user(&format!("{task} {number}"));
                    acknowledged.push(uuid(&writer.append(draft).await.unwrap()));
                }
                acknowledged
            })
        })
        .collect();
    let mut acknowledged = Vec::new();
    for task in tasks {
        acknowledged.push(task.await.unwrap());
    }
    writer.close().await.unwrap();
    let entries = session.entries();
    let found = uuids(&entries);
    assert_eq!(found.len(), 16 * 50);
    assert_eq!(found.iter().collect::<HashSet<_>>().len(), 16 * 50);
    for mut of_task in acknowledged {
        // In the order in which the task wrote them.
        of_task.reverse();
        for uuid in &found {
            if of_task.last() == Some(uuid) {
                of_task.pop();
            }
        }
        assert_eq!(of_task, Vec::<String>::new());
    }
    for pair in entries.windows(2) {
        assert_eq!(pair[1]["parentUuid"], pair[0]["uuid"]);
    }
}

#[tokio::test]
async fn an_acknowledged_entry_can_be_read_at_once_by_others() {
    let session = Session::new();
    let writer = session.open(WriterOptions::new());
    let written = writer.append(Draft::user("x")).await.unwrap();
    assert_eq!(uuids(&session.entries()), [uuid(&written)]);
}

#[tokio::test]
async fn a_dropped_future_takes_nothing_back() {
    let session = Session::new();
    let writer = session.open(WriterOptions::new());
    {
        let mut append = Box::pin(writer.append(Draft::user("x")));
        // The first poll hands the entry over; then the future is dropped.
        let once = std::future::poll_fn(|context| {
            std::task::Poll::Ready(append.as_mut().poll(context).is_ready())
        });
        once.await;
    }
    writer.close().await.unwrap();
    assert_eq!(session.entries().len(), 1);
}

#[tokio::test]
async fn cancellation_stops_new_entries_and_finishes_accepted_ones() {
    let session = Session::new();
    let writer = session.open(WriterOptions::new());
    let ticket = writer.queue(Draft::user("queued")).await.unwrap();
    writer.cancellation().cancel();
    let refused = writer.append(Draft::user("late")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Closed);
    assert_eq!(
        writer.queue(Draft::user("late")).await.unwrap_err().kind(),
        ErrorKind::Closed
    );
    writer.close().await.unwrap();
    assert!(ticket.wait().is_ok());
    assert_eq!(session.entries().len(), 1);
}

#[tokio::test]
async fn a_flush_of_nothing_and_a_batch_of_none_are_answered() {
    let session = Session::new();
    let writer = session.open(WriterOptions::new());
    writer.flush().await.unwrap();
    assert_eq!(writer.append_all(Vec::new()).await.unwrap(), []);
    writer.sync().await.unwrap();
    assert!(!session.path.exists(), "no entry, no file");
}

#[tokio::test]
async fn answer_waits_for_its_sync_with_a_sync_for_each_entry() {
    let session = Session::new();
    let writer = session.open(WriterOptions::new().sync(SyncPolicy::Each));
    for number in 0..20 {
        writer
            .append(Draft::user(&number.to_string()))
            .await
            .unwrap();
        assert_eq!(writer.writer().stats().unsynced_bytes, 0);
    }
}

#[tokio::test]
async fn an_entry_that_is_refused_does_not_harm_others() {
    let session = Session::new();
    let writer = session.open(WriterOptions::new());
    let lost = Draft::user("lost").parent("nobody".into());
    let (first, second, third) = tokio::join!(
        writer.append(Draft::user("one")),
        writer.append(lost),
        writer.append(Draft::user("two")),
    );
    assert_eq!(second.unwrap_err().kind(), ErrorKind::UnknownParent);
    assert_eq!(
        uuids(&session.entries()),
        [uuid(&first.unwrap()), uuid(&third.unwrap())]
    );
}
