//! Commands in, answers out.

use std::io::{self, BufRead, Read, Write};

use transcript_engine::serve::{CommandServer, ServeError, Served};
use transcript_engine::wire::Answer;

use crate::support::{Place, create};

fn answers(text: &[u8]) -> Vec<Answer<'static>> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let answers = lines.map(|line| serde_json::from_slice(line).unwrap());
    answers.collect()
}

fn serve(input: impl BufRead, ack_batch: bool) -> (Served, Vec<Answer<'static>>) {
    let place = Place::new();
    let mut out = Vec::new();
    let server = CommandServer::new(create(&place.path), &mut out).ack_batch(ack_batch);
    let served = server.run(input);
    let answers = answers(&out);
    (served, answers)
}

/// The results of the commands: whether each succeeded.
fn oks(answers: &[Answer<'_>]) -> Vec<bool> {
    answers.iter().map(|answer| answer.ok).collect()
}

#[test]
fn answers_are_in_the_order_of_the_commands_and_a_failure_spares_the_others() {
    let input = concat!(
        r#"{"id":1,"op":"append","user":"Which years have a leap day?"}"#,
        "\n\n",
        r#"{"id":2,"op":"append","entry":{"type":"user","parentUuid":"nobody","message":{"role":"user","content":"x"}}}"#,
        "\n",
        r#"{"id":3,"op":"append","user":"And 1900?"}"#,
        "\n",
        r#"{"id":4,"op":"hello"}"#,
        "\nnonsense\n",
        r#"{"id":5,"op":"rewind","to":null}"#,
    );
    for ack_batch in [false, true] {
        let (served, answers) = serve(input.as_bytes(), ack_batch);
        assert!(served.result.is_ok() && served.any_failed && served.rescue.is_none());
        assert_eq!(oks(&answers), [true, false, true, true, false, true]);
        let ids = answers.iter().map(|answer| answer.id.as_ref());
        let ids: Vec<_> = ids.map(|id| id.map_or("", |id| id.text())).collect();
        assert_eq!(ids, ["1", "2", "3", "4", "", "5"]);
        let kinds = answers.iter().filter_map(|answer| answer.error.as_ref());
        let kinds: Vec<_> = kinds.map(|error| &*error.kind).collect();
        assert_eq!(kinds, ["unknown-parent", "bad-command"]);
        // The second prompt is a child of the first, and the rewind leaves no leaf.
        let written = answers.iter().filter_map(|answer| answer.written.as_ref());
        let written: Vec<_> = written.collect();
        assert_eq!(written[1].entries[0].parent_uuid, written[0].uuid);
        assert_eq!(written[2].uuid, None);
    }
}

#[test]
fn nothing_after_close_is_executed_and_close_is_answered_last() {
    let input = concat!(
        r#"{"op":"append","user":"Which years have a leap day?"}"#,
        "\n",
        r#"{"id":"end","op":"close"}"#,
        "\n",
        r#"{"op":"hello"}"#,
        "\n",
    );
    let (served, answers) = serve(input.as_bytes(), false);
    assert!(served.result.is_ok() && !served.any_failed);
    assert_eq!(oks(&answers), [true, true]);
    assert_eq!(answers[1].id.as_ref().map(|id| id.text()), Some("\"end\""));
}

/// Fails after some bytes.
struct Broken<'b>(&'b [u8]);

impl Read for Broken<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            Err(io::Error::other("broken"))
        } else {
            self.0.read(buffer)
        }
    }
}

#[test]
fn commands_before_a_read_error_are_executed_and_answered() {
    let input = b"{\"op\":\"append\",\"user\":\"Which years have a leap day?\"}\n{\"op\":\"hel";
    let (served, answers) = serve(io::BufReader::new(Broken(input)), false);
    assert!(matches!(served.result, Err(ServeError::Read(_))));
    assert_eq!(oks(&answers), [true]);
}

/// An output whose reader is gone.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_command_is_executed_even_if_its_answer_cannot_be_written() {
    let place = Place::new();
    let input = br#"{"op":"append","user":"Which years have a leap day?"}"#;
    let served = CommandServer::new(create(&place.path), Closed).run(&input[..]);
    assert!(matches!(served.result, Err(ServeError::Write(_))));
    let text = std::fs::read_to_string(&place.path).unwrap();
    assert!(text.contains("leap day") && text.ends_with('\n'));
}

/// Each command, in an order in which it succeeds.
const COMMANDS: [&str; 30] = [
    r#"{"op":"hello"}"#,
    r#"{"op":"append","user":"Which years have a leap day?"}"#,
    r#"{"op":"append","entry":"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"And 1900?\"}}"}"#,
    r#"{"op":"appendAll","entries":[{"type":"user","message":{"role":"user","content":"And 2000?"}}]}"#,
    r#"{"op":"queue","user":"And 2100?"}"#,
    r#"{"op":"title","title":"Leap days"}"#,
    r#"{"op":"tag","tag":"dates"}"#,
    r#"{"op":"tag","tag":null}"#,
    r#"{"op":"endTurn","prompt":"And 2100?"}"#,
    r#"{"op":"count","reply":{"model":"m","usage":{"output_tokens":2}},"apiMs":1.5,"linesAdded":3}"#,
    r#"{"op":"counters"}"#,
    r#"{"op":"completeCalls","text":"It did not run."}"#,
    r#"{"op":"context","gitBranch":"main"}"#,
    r#"{"op":"state"}"#,
    r#"{"op":"fork","at":1,"title":"Copy"}"#,
    r#"{"op":"request"}"#,
    r#"{"op":"entries"}"#,
    r#"{"op":"usage"}"#,
    r#"{"op":"leaf"}"#,
    r#"{"op":"prompt","sections":[{"name":"base","text":"Be short."}]}"#,
    r#"{"op":"changes","sections":[{"name":"base","text":"Be brief."}]}"#,
    r#"{"op":"record","messages":[]}"#,
    r#"{"op":"sync"}"#,
    r#"{"op":"append","assistant":{"id":"m","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t1","name":"Calendar","input":{}},{"type":"tool_use","id":"t2","name":"Calendar","input":{}}]}}"#,
    r#"{"op":"append","toolResult":{"call":"t1","content":"366 days","toolUseResult":{"days":366}}}"#,
    r#"{"op":"append","toolResult":{"call":"t2","content":[{"type":"text","text":"no year"}],"isError":true}}"#,
    r#"{"op":"compact","trigger":"auto","summary":"Leap days.","keepTurns":1}"#,
    r#"{"op":"story"}"#,
    r#"{"op":"findEntry","name":1}"#,
    r#"{"op":"rewind","to":null}"#,
];

#[test]
fn a_program_in_any_language_has_every_command_that_python_and_node_have() {
    let (served, answers) = serve(COMMANDS.join("\n").as_bytes(), false);
    let failed: Vec<_> = answers.iter().filter(|answer| !answer.ok).collect();
    assert!(served.result.is_ok() && failed.is_empty(), "{failed:?}");
    let has = |at: usize| &answers[at];
    assert_eq!(
        has(4).written.as_ref().map(|written| written.entries.len()),
        Some(0)
    );
    assert!(has(9).counters.is_some() && has(10).counters == has(9).counters);
    assert!(has(13).state.is_some() && has(14).path.is_some() && has(17).models.is_some());
    let request = has(15)
        .request
        .as_ref()
        .map(|request| request.text().to_owned());
    assert!(request.is_some_and(|request| request.contains("And 2100?")));
    let list = has(16).list.as_ref().map(|list| list.text().to_owned());
    let list: serde_json::Value = serde_json::from_str(&list.unwrap()).unwrap();
    assert_eq!(list.as_array().map(Vec::len), Some(4));
    let story = has(27).story.as_ref().map(|story| story.text().to_owned());
    let story: serde_json::Value = serde_json::from_str(&story.unwrap()).unwrap();
    let in_context = |entry: &&serde_json::Value| entry["inContext"] == true;
    let previews: Vec<_> = story
        .as_array()
        .unwrap()
        .iter()
        .filter(in_context)
        .collect();
    let previews: Vec<_> = previews
        .into_iter()
        .map(|entry| &entry["preview"])
        .collect();
    // The last turn word for word (results have no preview), then the boundary and the summary.
    assert_eq!(
        previews,
        [
            "And 2100?",
            "Calendar",
            "Calendar",
            "",
            "",
            "",
            "Leap days."
        ]
    );
    assert_eq!(
        (&story[0]["preview"], &story[0]["chapter"]),
        (&"Which years have a leap day?".into(), &0.into())
    );
    let first = &has(1).written.as_ref().unwrap().uuid;
    assert_eq!(&has(28).written.as_ref().unwrap().uuid, first);
    let changes = has(20).changes.as_ref();
    assert_eq!(
        changes.map(|changes| changes.changed.clone()),
        Some(vec!["base".to_owned()])
    );
}

#[test]
fn a_misspelt_field_is_refused_in_every_command() {
    for command in COMMANDS {
        let misspelt = command.replacen(',', r#","othr":1,"#, 1);
        let misspelt = if misspelt == command {
            command.replace('}', r#","othr":1}"#)
        } else {
            misspelt
        };
        let (_, answers) = serve(misspelt.as_bytes(), false);
        let error = answers[0]
            .error
            .as_ref()
            .map(|error| (&*error.kind, &*error.message));
        assert!(
            error.is_some_and(
                |(kind, message)| kind == "bad-command" && message.contains("does not have")
            ),
            "{misspelt}: {error:?}"
        );
    }
}
