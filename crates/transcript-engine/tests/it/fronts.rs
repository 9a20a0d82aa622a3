//! The blocking and the async front have the same methods.

use transcript_engine::{AgentId, AgentMeta, AsyncSession, Draft, SessionOptions};

use crate::support::{Place, answer, call, options};

const BLOCKING: &str = include_str!("../../../transcript-session/src/session.rs");
const ASYNC: &str = include_str!("../../../transcript-session/src/asynchronous.rs");

/// Returns the signatures of the public methods of `name`, sorted, in one spelling for both fronts:
/// without `async`, and on one line.
fn methods(source: &str, name: &str) -> Vec<String> {
    let start = format!("\nimpl {name} {{\n");
    let blocks = source.split(&start).skip(1);
    let blocks = blocks.filter_map(|rest| rest.split("\n}\n").next());
    let mut methods = Vec::new();
    for block in blocks {
        let block = format!("\n{block}");
        let public = block.split("\n    pub ").skip(1);
        let public = public.filter(|item| item.starts_with("fn ") || item.starts_with("async fn "));
        methods.extend(public.map(|item| {
            let signature = item.split(" {\n").next().unwrap();
            let words: Vec<&str> = signature.split_whitespace().collect();
            let line = words.join(" ").replace("( ", "(").replace(", )", ")");
            line.trim_start_matches("async ")
                .trim_end_matches(',')
                .replace("Resumed<Self>", "Resumed")
        }));
    }
    methods.sort();
    methods
}

#[test]
fn both_fronts_have_the_same_methods_with_the_same_arguments() {
    let blocking = methods(BLOCKING, "Session");
    assert!(blocking.len() > 20, "{blocking:?}");
    assert!(
        blocking
            .iter()
            .any(|one| one == "fn set_title(&self, title: &str) -> Result<Written, Error>")
    );
    assert_eq!(blocking, methods(ASYNC, "AsyncSession"));
}

#[test]
fn a_method_or_an_argument_that_one_front_lacks_is_seen() {
    let blocking = "\nimpl Session {\n    pub fn tag(\n        &self,\n        tag: &str,\n    ) -> u8 {\n    }\n\n    \
         pub fn end(self) {\n    }\n}\n";
    let same = "\nimpl AsyncSession {\n    pub async fn end(self) {\n    }\n    pub async fn tag(&self, tag: &str) -> u8 {\n    }\n\n    \
         async fn own(&self) {\n    }\n}\n";
    assert_eq!(methods(blocking, "Session").len(), 2);
    assert_eq!(methods(blocking, "Session"), methods(same, "AsyncSession"));
    for other in [
        same.replace("tag: &str", "tag: String"),
        same.replace("pub async fn end", "async fn end"),
    ] {
        assert_ne!(
            methods(blocking, "Session"),
            methods(&other, "AsyncSession")
        );
    }
}

#[tokio::test]
async fn tasks_open_resume_and_repair_sessions() {
    let place = Place::new();
    let options: SessionOptions = options();
    let session = AsyncSession::create(&place.path, &options).await.unwrap();
    session.append(Draft::user("x")).await.unwrap();
    let agent = AgentId::new("a1").unwrap();
    let meta = AgentMeta::new("Explore", "toolu_agent");
    let child = session.agent(&agent, &meta).await.unwrap();
    child.append(Draft::user("Look around")).await.unwrap();
    assert_eq!(child.path(), agent.path(&place.path));
    child.close().await.unwrap();
    session.close().await.unwrap();

    // A call without a result, and a torn line after it.
    let blocking = transcript_engine::Session::open(&place.path, &options).unwrap();
    answer(&blocking, "m1", &serde_json::json!([call("t1")]));
    blocking.close().unwrap();
    let mut bytes = std::fs::read(&place.path).unwrap();
    bytes.extend_from_slice(b"{\"type\":\"us");
    std::fs::write(&place.path, &bytes).unwrap();

    let resumed = AsyncSession::resume(&place.path, &options).await.unwrap();
    assert!(resumed.session.repair().is_some());
    assert!(resumed.session.restored().is_empty());
    assert!(!resumed.added.is_empty());
    assert_eq!(resumed.forked_from, None);
    let last = resumed.session.append(Draft::user("y")).await.unwrap();
    assert_eq!(resumed.session.writer().leaf(), last.uuid);
    resumed.session.close().await.unwrap();

    let session = AsyncSession::open_or_create(&place.path, &options).await;
    let session = session.unwrap();
    assert_eq!(session.leaf(), last.uuid);
    assert!(session.repair().is_none());
    session.close().await.unwrap();
}
