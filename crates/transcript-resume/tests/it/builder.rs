//! Sessions that are continued with messages made by hand.

use transcript_messages::builder::MessageList;
use transcript_messages::{Message, Role, lint};
use transcript_resume::Policy;
use transcript_resume::request::RequestOptions;

use crate::request_forms::{CALL, RESULT, Session};
use crate::strict::{Loaded, for_each_session, forms};

#[test]
fn a_session_is_gone_on_with() {
    let session = Session::default()
        .user("\"A\"")
        .assistant("m1", CALL)
        .user(RESULT)
        .assistant("m2", r#"[{"type":"text","text":"Done. "}]"#);
    let request = session.request_under(Policy::Recover, &RequestOptions::new());
    let mut talk = MessageList::resume(&request.messages).unwrap();
    let resumed = talk.build().unwrap();
    assert_eq!(
        (&resumed.messages, resumed.notes),
        (&request.messages, vec![])
    );

    talk.user("Next.").unwrap();
    let built = talk.build().unwrap();
    let asked = session.request_under(Policy::Recover, &RequestOptions::new().prompt("Next."));
    assert_eq!(built.messages.len(), 5);
    assert_eq!(built.messages[4], asked.messages[4]);
    // The blocks still refer to the entries that they come from.
    let entries = |messages: &[Message]| -> Vec<_> {
        let blocks = messages.iter().flat_map(Message::blocks);
        blocks.map(|block| block.origin()).collect()
    };
    assert_eq!(
        entries(&built.messages),
        [Some(0), Some(1), Some(2), Some(3), None]
    );
}

#[test]
fn every_session_is_gone_on_with_and_nothing_of_it_changes() {
    let mut resumed = 0;
    for_each_session(300, |name, bytes| {
        let session = Loaded::new(bytes);
        for options in forms() {
            let messages = session.request(Policy::Recover, &options).messages;
            if messages.is_empty() {
                continue;
            }
            let mut talk = MessageList::resume(&messages).unwrap();
            let built = talk.build().unwrap();
            assert_eq!(
                (&built.messages, built.notes),
                (&messages, vec![]),
                "{name}"
            );
            talk.user("Next.").unwrap();
            let built = talk.build().unwrap();
            assert_eq!(lint(&built.messages).problems, [], "{name}");
            // Reminders in the system role come after the user text.
            let mut messages = built.messages.iter().rev();
            let last = messages.find(|message| message.role() == Role::User);
            let last = last.unwrap().blocks().last().unwrap();
            assert_eq!(last.text_field().unwrap(), "Next.", "{name}");
            resumed += 1;
        }
    });
    assert!(resumed > 300, "{resumed}");
}
