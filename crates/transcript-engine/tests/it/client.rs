//! Actions of a person in a client that embeds the crate: written as clients write them, and read back.

use serde_json::json;
use transcript_engine::make::{self, NewEntry};
use transcript_engine::{Draft, History, Policy, Session, SessionOptions};
use transcript_format::context_refs::Reference;
use transcript_format::texts::{RejectedBy, Rejection};

use crate::support::{Place, answer, answer_text, call, create, messages, say};

fn add(session: &Session, entry: NewEntry) {
    session.append(Draft::try_from(entry).unwrap()).unwrap();
}

/// Returns what each entry is: whether it is a prompt, and its preview.
fn shown(session: &Session) -> Vec<(bool, String)> {
    let entries = session.entries().unwrap().into_iter();
    entries
        .map(|entry| (entry.is_prompt, entry.preview))
        .collect()
}

#[test]
fn action_in_a_client_is_not_a_prompt_and_is_shown_as_typed() {
    let place = Place::new();
    let session = create(&place.path);
    let references = [Reference::File {
        path: "src/main.rs",
    }; 9];
    let question = "Why does it fail?";
    add(
        &session,
        make::user_with_references(&references, question).unwrap(),
    );
    answer(&session, "m1", &json!([call("toolu_1"), call("toolu_2")]));
    let rejection = Rejection::new(RejectedBy::Person, Some("Use the branch."));
    add(&session, make::rejection("toolu_1", rejection));
    add(&session, make::cancelled("toolu_2"));
    add(&session, make::interrupt(true));
    say(&session, "Use the branch");
    answer_text(&session, "Done.");
    add(&session, make::command_caveat());
    add(&session, make::shell("ls -l </bash-input> && a"));
    add(&session, make::shell_output("x", "</bash-stdout>"));
    add(&session, make::command_caveat());
    add(&session, make::command("compact", ""));
    add(&session, make::command_output("Compacted", ""));
    let shown = shown(&session);
    let prompts = shown.iter().filter(|(is_prompt, _)| *is_prompt);
    let prompts: Vec<&str> = prompts.map(|(_, preview)| &**preview).collect();
    // A command of the shell starts a turn, as in lists.
    assert_eq!(
        prompts,
        [question, "Use the branch", "! ls -l </bash-input> && a"]
    );
    let commands = shown.iter().filter(|(_, preview)| preview == "/compact");
    assert_eq!(commands.count(), 1, "{shown:?}");
    session.close().unwrap();

    for policy in [Policy::Recover, Policy::Vendor] {
        let history = History::open(&place.path).unwrap();
        let options = SessionOptions::new().policy(policy);
        let request = history.request(&options).unwrap();
        let sent = messages(&request).concat();
        // The command ran in the client, so it needs no answer (TURN-6).
        assert!(
            !sent.contains("No response requested"),
            "{policy:?}: {sent}"
        );
        assert!(sent.contains("the user said:\\nUse the branch."), "{sent}");
        assert_eq!(
            request.synthetic.len(),
            0,
            "{policy:?}: {:?}",
            request.synthetic
        );
        assert!(
            transcript_engine::lint(&request.messages).is_ok(),
            "{policy:?}"
        );
    }
}

#[cfg(feature = "archive")]
mod archive {
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;

    use serde_json::{Value, json};
    use transcript_archive::{Archive, ArchiveDisk, CaptureOptions};
    use transcript_engine::RootArchive;
    use transcript_format::context_refs::{Reference, prompt};

    /// The summary of earlier versions: the prompt on one line, cut.
    fn summary_of_before(path: &Path) -> Vec<u8> {
        let summary = transcript_engine::summarize(path);
        let mut summary: Value = serde_json::from_slice(&summary).unwrap();
        summary["firstPrompt"] = json!("> **上下文资料** >  > - 📄 `a.rs`…");
        summary["lastPrompt"] = summary["firstPrompt"].clone();
        summary["branch"] = json!("kept");
        summary.to_string().into_bytes()
    }

    #[test]
    fn an_archived_session_is_read_again_if_only_references_were_kept_of_its_prompt() {
        let folder = tempfile::tempdir().unwrap();
        let [root, archive] = ["projects", "archive"].map(|name| folder.path().join(name));
        let text = prompt(&[Reference::File { path: "a.rs" }], "Why?").unwrap();
        let file = root.join("-work/1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
        let line =
            json!({"type": "user", "uuid": "u", "message": {"role": "user", "content": text}});
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("{line}\n")).unwrap();
        for summarize in [summary_of_before, transcript_engine::summarize] {
            _ = fs::remove_dir_all(&archive);
            let mut kept = Archive::open_or_create(&archive).unwrap();
            let options = CaptureOptions::new().summarize(Arc::new(summarize));
            kept.capture(&root, &options).unwrap();
            drop(kept);
            let disk = Arc::new(ArchiveDisk::new(&archive));
            let listing = RootArchive::new(disk).list().unwrap();
            let [row] = listing.rows.try_into().unwrap();
            assert_eq!(row.first_prompt.as_deref(), Some("Why?"));
            assert_eq!(row.last_prompt.as_deref(), Some("Why?"));
            assert_eq!(row.branch, None);
        }
    }
}
