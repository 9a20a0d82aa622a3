//! Requests made by hand.

use serde_json::{Value, json};
use transcript_format::object::{Object, Raw};
use transcript_format::texts::{NO_CONTENT, START_MISSING, UNKNOWN_TOOL};
use transcript_messages::builder::{
    BuildNote, BuiltMessages, Error, MessageBuilder, MessageList, NoteKind, RequestSettings,
};
use transcript_messages::{Message, OmissionReason, Rule, SyntheticKind, TokenEstimate, lint};
use transcript_testkit::rng::Rng;
use transcript_testkit::validator::validate;

fn user() -> MessageBuilder {
    MessageBuilder::user()
}

fn call(id: &str) -> MessageBuilder {
    call_with(id, "Bash", r#"{"command":"ls"}"#)
}

fn call_with(id: &str, name: &str, input: &str) -> MessageBuilder {
    MessageBuilder::assistant().tool_use(id, name, &Object::parse(input).unwrap())
}

fn of_json(builder: MessageBuilder, content: &str) -> MessageBuilder {
    builder.content(Raw::parse(content).unwrap())
}

fn talk(messages: impl IntoIterator<Item = MessageBuilder>) -> Result<MessageList, Error> {
    let mut talk = MessageList::new();
    messages
        .into_iter()
        .try_for_each(|message| talk.push(message))?;
    Ok(talk)
}

fn build(messages: impl IntoIterator<Item = MessageBuilder>) -> BuiltMessages {
    let built = talk(messages).unwrap().build().unwrap();
    assert_eq!(lint(&built.messages).problems, []);
    built
}

fn values(messages: &[Message]) -> Value {
    messages
        .iter()
        .map(|message| serde_json::from_str::<Value>(&message.json()).unwrap())
        .collect()
}

fn note(pushed: usize, kind: NoteKind) -> BuildNote {
    BuildNote { pushed, kind }
}

fn refused(pushed: usize, rule: Rule) -> BuildNote {
    note(pushed, NoteKind::LeftOut(OmissionReason::Refused(rule)))
}

fn merged(pushed: usize, message: usize) -> BuildNote {
    note(pushed, NoteKind::Merged { message })
}

fn pair(rule: Rule, id: &str) -> Error {
    let id = id.into();
    Error::Pair { rule, id }
}

// ---------------------------------------------------------------------------------------------
// Messages
// ---------------------------------------------------------------------------------------------

#[test]
fn neighbours_join_and_results_come_first() {
    let built = build([
        user().text("A"),
        user().text("B"),
        call("c1"),
        call("c2"),
        user().text("wait"),
        user().tool_result("c2", "two").tool_error("c1", "one"),
    ]);
    let input = json!({"command": "ls"});
    let call = |id| json!({"type": "tool_use", "id": id, "name": "Bash", "input": input});
    let result =
        |id, content| json!({"type": "tool_result", "tool_use_id": id, "content": content});
    let mut failed = result("c1", "one");
    failed["is_error"] = json!(true);
    let text = |text| json!({"type": "text", "text": text});
    let expected = json!([
        {"role": "user", "content": [text("A"), text("B")]},
        {"role": "assistant", "content": [call("c1"), call("c2")]},
        {"role": "user", "content": [result("c2", "two"), failed, text("wait")]},
    ]);
    assert_eq!(values(&built.messages), expected);
    assert_eq!(built.notes, [merged(1, 0), merged(3, 1), merged(5, 2)]);
}

#[test]
fn messages_without_changes_get_no_note() {
    let built = build([user().text("A"), call("c1"), user().tool_result("c1", "")]);
    assert_eq!(built.notes, []);
    let built = build([user().text("A")]);
    assert_eq!(
        values(&built.messages),
        json!([{"role": "user", "content": "A"}])
    );
}

#[test]
fn refused_messages_are_repaired_and_noted() {
    let built = build([
        MessageBuilder::assistant().text("Hi."),
        user().text(" \n"),
        MessageBuilder::assistant().text("There. "),
    ]);
    let texts = json!([{"type": "text", "text": "Hi."}, {"type": "text", "text": "There."}]);
    let expected = json!([
        {"role": "user", "content": [{"type": "text", "text": START_MISSING}]},
        {"role": "assistant", "content": texts},
    ]);
    assert_eq!(values(&built.messages), expected);
    let start = note(0, NoteKind::MadeUp(SyntheticKind::MissingStart));
    assert_eq!(
        built.notes,
        [start, refused(1, Rule::BlankText), merged(2, 1)]
    );

    let built = build([
        user().text("A"),
        call_with("c 1", "", r#"{"a":"b"}"#),
        user().tool_error("c 1", ""),
    ]);
    let messages = values(&built.messages);
    let called = &messages[1]["content"][0];
    assert_eq!(called["name"], UNKNOWN_TOOL);
    assert_eq!(called["id"], messages[2]["content"][0]["tool_use_id"]);
    assert_eq!(messages[2]["content"][0]["content"][0]["text"], NO_CONTENT);
    let long = "é".repeat(201);
    let named = build([
        user().text("A"),
        call_with("c1", &long, "{}"),
        user().tool_error("c1", "no"),
    ]);
    assert_eq!(
        values(&named.messages)[1]["content"][0]["name"],
        "é".repeat(200)
    );
    let expected = [
        refused(1, Rule::CallId),
        refused(1, Rule::CallName),
        refused(2, Rule::SilentError),
        note(2, NoteKind::MadeUp(SyntheticKind::NoContent)),
    ];
    assert_eq!(built.notes, expected);
}

#[test]
fn a_result_in_the_form_of_mcp_is_sent_as_text() {
    let result = |content: &str| {
        let block = format!(r#"[{{"type":"tool_result","tool_use_id":"c1","content":{content}}}]"#);
        let built = build([user().text("A"), call("c1"), of_json(user(), &block)]);
        values(&built.messages)[2]["content"][0]["content"].clone()
    };
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    for (block, expected) in [
        (
            r#"{"type":"resource","resource":{"uri":"a://b","text":"T"}}"#,
            text("T"),
        ),
        (
            r#"{"type":"resource","resource":{"uri":"a://b","mimeType":"a/b","blob":"QQ=="}}"#,
            text("[resource a://b a/b]"),
        ),
        (
            r#"{"type":"resource_link","uri":"a://b","name":"n"}"#,
            text("[resource_link n a://b]"),
        ),
        (
            r#"{"type":"audio","data":"QQ==","mimeType":"audio/wav"}"#,
            text("[audio audio/wav]"),
        ),
        (r#"{"type":"audio"}"#, text("[audio]")),
        // The maximum length of a name by which the API loads a tool.
        (
            &format!(
                r#"{{"type":"tool_reference","tool_name":"{}"}}"#,
                "n".repeat(65)
            ),
            json!([]),
        ),
        (
            r#"{"type":"tool_reference","tool_name":"n"}"#,
            json!([{"type": "tool_reference", "tool_name": "n"}]),
        ),
        (
            r#"{"type":"of_tomorrow"}"#,
            json!([{"type": "of_tomorrow"}]),
        ),
    ] {
        assert_eq!(result(&format!("[{block}]")), expected, "{block}");
    }
}

#[test]
fn a_tool_keeps_its_name_and_an_answer_its_blocks() {
    let built = build([
        user().text("A"),
        call_with("c1", "Task", "{}"),
        user().tool_result("c1", "x"),
    ]);
    assert_eq!(values(&built.messages)[1]["content"][0]["name"], "Task");

    let reply = r#"[{"type":"thinking","thinking":"Hm.","signature":"s"},{"n":1e999,"type":"text","text":"Yes."}]"#;
    let built = build([
        user().text("A"),
        of_json(MessageBuilder::assistant(), reply),
    ]);
    assert_eq!(
        built.messages[1].json(),
        format!(r#"{{"role":"assistant","content":{reply}}}"#)
    );
}

#[test]
fn pairs_that_do_not_fit_are_errors_and_change_nothing() {
    let open = [user().text("A"), call("c1"), call("c2")];
    let refused = |message: MessageBuilder| {
        let mut talk = talk(open.clone()).unwrap();
        let error = talk.push(message).unwrap_err();
        talk.push(user().tool_result("c1", "x").tool_result("c2", "y"))
            .unwrap();
        assert_eq!(talk.build().unwrap().messages.len(), 3);
        error
    };
    assert_eq!(refused(call("c1")), pair(Rule::RepeatedCall, "c1"));
    let input = Object::parse("{}").unwrap();
    let twice = call("c3").tool_use("c3", "Bash", &input);
    assert_eq!(refused(twice), pair(Rule::RepeatedCall, "c3"));
    let orphan = user().tool_result("c1", "x").tool_result("c3", "z");
    assert_eq!(refused(orphan), pair(Rule::OrphanResult, "c3"));
    let twice = user().tool_result("c1", "x").tool_result("c1", "x");
    assert_eq!(refused(twice), pair(Rule::RepeatedResult, "c1"));

    let mut unanswered = talk(open.clone()).unwrap();
    assert_eq!(unanswered.build(), Err(pair(Rule::MissingResult, "c1")));
    unanswered.push(user().tool_result("c1", "x")).unwrap();
    assert_eq!(unanswered.build(), Err(pair(Rule::MissingResult, "c2")));
    assert_eq!(
        unanswered.assistant("So"),
        Err(pair(Rule::MissingResult, "c2"))
    );

    let late = [user().text("A"), user().tool_result("c1", "x")];
    assert_eq!(talk(late).unwrap_err(), pair(Rule::OrphanResult, "c1"));
}

#[test]
fn nothing_to_send_is_an_error() {
    assert_eq!(MessageList::new().build(), Err(Error::NothingToSend));
    let blank = talk([user().text(" "), user().text("")]).unwrap();
    assert_eq!(blank.build(), Err(Error::NothingToSend));
}

#[test]
fn the_body_has_the_settings_and_the_messages() {
    let built = build([user().text("A"), MessageBuilder::assistant().text("B")]);
    let messages =
        r#""messages":[{"role":"user","content":"A"},{"role":"assistant","content":"B"}]"#;
    let plain = RequestSettings::new("m-1", 1024);
    assert_eq!(
        built.to_request(&plain),
        format!(r#"{{"model":"m-1","max_tokens":1024,{messages}}}"#)
    );
    let tools = r#"[{"name":"Bash","input_schema":{"type":"object"}}]"#;
    let full = plain
        .system("Be\nbrief.")
        .tools(Raw::parse(tools).unwrap())
        .stream(true);
    assert_eq!(
        built.to_request(&full),
        format!(
            r#"{{"model":"m-1","max_tokens":1024,"system":"Be\nbrief.","tools":{tools},"stream":true,{messages}}}"#
        )
    );
}

// ---------------------------------------------------------------------------------------------
// Media
// ---------------------------------------------------------------------------------------------

/// The start and the end of a PNG of this size, in pixels.
fn png(width: u32, height: u32) -> Vec<u8> {
    let chunk = |kind: &[u8], data: &[u8]| {
        let chunk = [kind, data].concat();
        let (len, sum) = (data.len() as u32, crc32fast::hash(&chunk));
        [&len.to_be_bytes()[..], &chunk, &sum.to_be_bytes()].concat()
    };
    let sizes = [width.to_be_bytes(), height.to_be_bytes()].concat();
    let header = chunk(b"IHDR", &[&sizes[..], b"\x08\x06\0\0\0"].concat());
    let start = b"\x89PNG\r\n\x1a\n".to_vec();
    [start, header, chunk(b"IDAT", b""), chunk(b"IEND", b"")].concat()
}

#[test]
fn images_are_known_by_their_first_bytes_and_limited() {
    let types = [
        ("image/png", png(1, 1)),
        (
            "image/jpeg",
            b"\xff\xd8\xff\xc0\0\x0b\x08\0\x01\0\x01\x01\x01\x11\0\xff\xda\0\x02\xff\xd9".to_vec(),
        ),
        (
            "image/gif",
            b"GIF87a\x01\0\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\0;".to_vec(),
        ),
        (
            "image/webp",
            b"RIFF\x11\0\0\0WEBPVP8L\x05\0\0\0\x2f\0\0\0\0".to_vec(),
        ),
    ];
    for (expected, mut bytes) in types {
        let built = build([user().image(&bytes).unwrap()]);
        let block = &values(&built.messages)[0]["content"][0];
        assert_eq!(block["source"]["media_type"], expected);
        let again = user().image_base64(block["source"]["data"].as_str().unwrap());
        assert_eq!(again.unwrap(), user().image(&bytes).unwrap());
        // The base64 of 3.75 MiB are 5 MiB.
        bytes.resize((5 << 20) / 4 * 3, 0);
        assert_eq!(build([user().image(&bytes).unwrap()]).notes, []);
        bytes.push(0);
        assert_eq!(user().image(&bytes), Err(Error::TooLarge));
    }
    for other in [&b""[..], b"BM", b"%PDF-1.7", b"<svg/>"] {
        assert_eq!(user().image(other), Err(Error::UnknownImage));
    }
    assert_eq!(user().image_base64("AAAA"), Err(Error::UnknownImage));
    assert_eq!(user().image_base64("iVBO\nRw0K"), Err(Error::NotBase64));
    // Nothing longer is decoded.
    assert_eq!(
        user().image_base64(&"!".repeat(5 << 20)),
        Err(Error::NotBase64)
    );
    assert_eq!(
        user().image_base64(&"!".repeat((5 << 20) + 1)),
        Err(Error::TooLarge)
    );
}

/// A PDF with the parts that are looked at.
const PDF: &[u8] = b"%PDF-1.7\n1 0 obj\nstartxref\n9\n%%EOF";

#[test]
fn documents_are_pdf_or_text_and_limited() {
    let source = |bytes: &[u8]| {
        let built = build([user().document(bytes).unwrap()]);
        assert_eq!(built.notes, []);
        values(&built.messages)[0]["content"][0]["source"].clone()
    };
    let expected = json!({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjcKMSAwIG9iagpzdGFydHhyZWYKOQolJUVPRg=="});
    assert_eq!(source(PDF), expected);
    let expected = json!({"type": "text", "media_type": "text/plain", "data": "Tag \u{fffd}日\n"});
    assert_eq!(source("Tag \0日\n".as_bytes()), expected);
    for other in [&b""[..], b"\xff\xfe"] {
        assert_eq!(user().document(other), Err(Error::UnknownDocument));
    }
    let mut pdf = b"%PDF-".to_vec();
    pdf.resize(32 << 20, b'.');
    assert!(user().document(&pdf).is_ok());
    pdf.push(b'.');
    assert_eq!(user().document(&pdf), Err(Error::TooLarge));
    let text = vec![b'a'; (5 << 20) + 1];
    assert!(user().document(&text[1..]).is_ok());
    assert_eq!(user().document(&text), Err(Error::TooLarge));
}

#[test]
fn addresses_are_sent_as_they_are_and_data_addresses_refused_with_a_hint() {
    let url = "https://example.org/a.pdf";
    let built = build([user().document_url(url).unwrap().image_url(url).unwrap()]);
    for block in values(&built.messages)[0]["content"].as_array().unwrap() {
        assert_eq!(block["source"], json!({"type": "url", "url": url}));
    }
    for data in ["data:image/png;base64,iVBORw0KGgo=", " DATA:,x"] {
        let refused = [
            user().image_url(data),
            user().image_base64(data),
            user().document_url(data),
        ];
        assert_eq!(
            refused,
            [
                Err(Error::DataUrl),
                Err(Error::DataUrl),
                Err(Error::DataUrl)
            ]
        );
    }
    assert!(
        Error::DataUrl
            .to_string()
            .contains("the base64 after its comma")
    );
}

#[test]
fn media_in_given_content_and_in_results_keep_to_the_limits() {
    let data = "A".repeat(7 << 20);
    let large = format!(
        r#"[{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{data}"}}}}]"#
    );
    assert_eq!(
        talk([of_json(user(), &large)]).unwrap_err(),
        Error::TooLarge
    );
    let shown = user().image(&png(2, 2)).unwrap().text("a screen");
    let built = build([
        user().text("A"),
        call("c1"),
        user().tool_result_of("c1", &shown),
    ]);
    let content = &values(&built.messages)[2]["content"][0]["content"];
    assert_eq!(
        (&content[0]["type"], &content[1]["text"]),
        (&json!("image"), &json!("a screen"))
    );
    let result = of_json(user(), &large);
    let result = [
        user().text("A"),
        call("c1"),
        user().tool_result_of("c1", &result),
    ];
    assert_eq!(talk(result).unwrap_err(), Error::TooLarge);
}

// ---------------------------------------------------------------------------------------------
// Estimates
// ---------------------------------------------------------------------------------------------

/// The estimate of the last message.
fn estimate(messages: impl IntoIterator<Item = MessageBuilder>) -> (u64, usize) {
    let built = build(messages);
    let last = built.messages.last().unwrap();
    let estimate: TokenEstimate = last.blocks().iter().map(TokenEstimate::of).sum();
    assert!(built.estimate().tokens >= estimate.tokens);
    (estimate.tokens, estimate.unknown)
}

#[test]
fn each_block_is_estimated_by_its_rule() {
    assert_eq!(estimate([user().text("12345678")]), (2, 0));
    assert_eq!(estimate([user().text("123456789日本")]), (5, 0));
    let asked = || [user().text("A"), call("c1")];
    let results = |result: MessageBuilder| {
        let [ask, call] = asked();
        estimate([ask, call, result])
    };
    assert_eq!(results(user().tool_result("c1", "12345")), (12, 0));
    let shown = user().image(&png(1000, 751)).unwrap().text("1234");
    assert_eq!(
        results(user().tool_result_of("c1", &shown)),
        (10 + 1002 + 1, 0)
    );
    let built = build(asked().into_iter().chain([user().tool_result("c1", "")]));
    let call = TokenEstimate::of(&built.messages[1].blocks()[0]);
    // The name has 4 characters, the input 16.
    assert_eq!((call.tokens, call.unknown), (20 + 1 + 4, 0));

    assert_eq!(estimate([user().image(&png(750, 3)).unwrap()]), (3, 0));
    assert_eq!(
        estimate([user().image_url("https://e.org").unwrap()]),
        (0, 1)
    );
    assert_eq!(estimate([user().document(PDF).unwrap()]), (0, 1));
    assert_eq!(estimate([user().document(b"12345678").unwrap()]), (2, 0));
    let largest = user().image(&png(8_000, 8_000)).unwrap();
    // The API makes it smaller first.
    assert_eq!(estimate([largest]), (4_784, 0));
}

// ---------------------------------------------------------------------------------------------
// Any row of operations
// ---------------------------------------------------------------------------------------------

/// Texts that stumble over something.
fn odd_text(rng: &mut Rng, number: usize) -> String {
    let odd = [
        "", " ", "\n\t", "\u{feff}", "a", "\0", "\\u0000", "日 ", "</b>\"", "[]\r\n",
    ];
    let odd = *rng.pick(&odd);
    if rng.one_in(3) {
        odd.to_owned()
    } else {
        format!("{number}{odd}")
    }
}

/// Content in JSON, and its texts, calls and results.
type Content = (
    &'static str,
    &'static [&'static str],
    &'static [(bool, &'static str)],
);

const CONTENTS: [Content; 9] = [
    (r#""a string""#, &["a string"], &[]),
    (
        r#"["bare",{"text":"too"},{"type":"text"},7,null]"#,
        &["bare", "too"],
        &[],
    ),
    (
        r#"[{"type":"thinking","thinking":"Hm.","signature":"s"}]"#,
        &[],
        &[],
    ),
    (
        r#"[{"type":"thinking","thinking":"Hm."},{"type":"redacted_thinking","data":"d"}]"#,
        &[],
        &[],
    ),
    (
        r#"[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}]"#,
        &[],
        &[],
    ),
    (
        r#"[{"type":"image","source":{"type":"base64","media_type":"image/bmp","data":"AAAA"}}]"#,
        &["[media left out: bytes that are not an image of a type that the API takes]"],
        &[],
    ),
    (
        r#"[{"type":"tool_use","id":"c1"},{"type":"tool_use","id":"c2","name":"A","input":"{\n}"}]"#,
        &[],
        &[(true, "c1"), (true, "c2")],
    ),
    (
        r#"[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"image"}],"is_error":true}]"#,
        &[],
        &[(false, "c1")],
    ),
    (
        r#"[{"type":"tool_result","tool_use_id":"c2","content":7},{"type":"text","text":"\ud800 x "}]"#,
        &["\u{fffd} x "],
        &[(false, "c2")],
    ),
];

/// A message, and what a slow model has to know of it.
struct PlainMessage {
    message: MessageBuilder,
    is_answer: bool,
    texts: Vec<String>,
    /// Calls and results, in order: whether it is a call, and its id.
    pairs: Vec<(bool, String)>,
}

impl PlainMessage {
    /// A message of one to three blocks. Its results are those of the call `open`, as a rule.
    fn new(rng: &mut Rng, number: usize, open: Option<&str>) -> Self {
        let is_answer = rng.one_in(2);
        let mut message = if is_answer {
            MessageBuilder::assistant()
        } else {
            user()
        };
        let (mut texts, mut pairs) = (Vec::new(), Vec::new());
        for _ in 0..rng.range(1, 3) {
            let id = *rng.pick(&["c1", "c2", "c3", "c4", "c5", "", "c 6", "\0"]);
            let result = open.filter(|_| !rng.one_in(4)).unwrap_or(id);
            let text = odd_text(rng, number);
            let way = if is_answer {
                *rng.pick(&[0, 0, 1, 1, 1, 2, 4, 6])
            } else {
                *rng.pick(&[0, 0, 1, 2, 2, 2, 2, 3, 4, 4, 5, 6])
            };
            message = match way {
                0 => message.text(&text),
                1 => {
                    let input = Object::parse("{\n}").unwrap();
                    message.tool_use(id, if rng.one_in(3) { "" } else { "Bash" }, &input)
                }
                2 => message.tool_result(result, &text),
                3 => message.tool_error(result, &text),
                4 => {
                    let content = user().text(&text).image(&png(3, 3)).unwrap();
                    message.tool_result_of(result, &content)
                }
                5 => message
                    .image(&png(3, 3))
                    .unwrap()
                    .document(b"A text.")
                    .unwrap(),
                _ => {
                    let (json, said, paired) = *rng.pick(&CONTENTS);
                    // Media in assistant messages are omitted without a note in their place.
                    let is_media = said.first().is_some_and(|text| text.starts_with("[media"));
                    if !(is_media && is_answer) {
                        texts.extend(said.iter().map(ToString::to_string));
                    }
                    pairs.extend(
                        paired
                            .iter()
                            .map(|(is_call, id)| (*is_call, id.to_string())),
                    );
                    of_json(message, json)
                }
            };
            match way {
                0 => texts.push(text),
                1 => pairs.push((true, id.to_owned())),
                2..=4 => pairs.push((false, result.to_owned())),
                _ => {}
            }
        }
        Self {
            message,
            is_answer,
            texts,
            pairs,
        }
    }
}

/// The pairs of a conversation, kept the slow way: by looking at all of it again.
#[derive(Default)]
struct Pairs {
    calls: Vec<String>,
    results: Vec<String>,
    last_is_answer: bool,
}

impl Pairs {
    fn open(&self) -> Option<&str> {
        let is_open = |id: &&String| !self.results.contains(*id);
        self.calls.iter().find(is_open).map(String::as_str)
    }

    /// Adds a message when all its pairs fit.
    fn add(&mut self, said: &PlainMessage) -> bool {
        if said.is_answer && !self.last_is_answer && self.open().is_some() {
            return false;
        }
        let before = (self.calls.len(), self.results.len());
        for (is_call, id) in &said.pairs {
            let fits = match is_call {
                // A call in a user message is not a call.
                true if !said.is_answer => continue,
                true => !self.calls.contains(id),
                false => self.calls.contains(id) && !self.results.contains(id),
            };
            if !fits {
                self.calls.truncate(before.0);
                self.results.truncate(before.1);
                return false;
            }
            let list = if *is_call {
                &mut self.calls
            } else {
                &mut self.results
            };
            list.push(id.clone());
        }
        self.last_is_answer = said.is_answer;
        true
    }
}

/// Checks the properties of every conversation that was built.
fn check(built: &BuiltMessages, texts: &[String], name: &str) {
    let problems = lint(&built.messages).problems;
    assert!(problems.is_empty(), "{name}: {problems:?}");

    let blocks = built.messages.iter().flat_map(Message::blocks);
    let sent = blocks.filter(|block| block.json().starts_with(r#"{"type":"text""#));
    let sent: Vec<String> = sent
        .map(|block| trimmed(&block.text_field().unwrap()))
        .collect();
    let said = texts
        .iter()
        .map(|text| trimmed(text))
        .filter(|text| !text.is_empty());
    let starts = sent.first().is_some_and(|text| text == START_MISSING);
    assert_eq!(
        sent[usize::from(starts)..],
        said.collect::<Vec<_>>(),
        "{name}"
    );

    // A second time there is nothing left to do.
    let again = MessageList::resume(&built.messages)
        .unwrap()
        .build()
        .unwrap();
    assert_eq!(
        (&again.messages, again.notes),
        (&built.messages, vec![]),
        "{name}"
    );
}

/// Without white space at the end, and as it is sent.
fn trimmed(text: &str) -> String {
    let is_space = |c: char| c.is_whitespace() || c == '\u{feff}';
    text.replace('\0', "\u{fffd}")
        .trim_end_matches(is_space)
        .to_owned()
}

#[test]
fn random_pushes_build_messages_that_a_strict_provider_accepts() {
    let (mut requests, mut built, mut refused, mut merges) = (String::new(), 0, 0, 0);
    for seed in 0..4_000 {
        let mut rng = Rng::new(seed);
        let (mut talk, mut pairs, mut texts) = (MessageList::new(), Pairs::default(), Vec::new());
        for number in 0..rng.range(1, 14) {
            let said = PlainMessage::new(&mut rng, number, pairs.open());
            let fits = pairs.add(&said);
            assert_eq!(
                talk.push(said.message).is_ok(),
                fits,
                "seed {seed}, message {number}"
            );
            refused += usize::from(!fits);
            if fits {
                texts.extend(said.texts);
            }
        }
        match talk.build() {
            Ok(done) => {
                assert!(pairs.open().is_none(), "seed {seed}");
                check(&done, &texts, &format!("seed {seed}"));
                requests += &format!("{}\n", values(&done.messages));
                built += 1;
                let is_merge = |note: &&BuildNote| matches!(note.kind, NoteKind::Merged { .. });
                merges += done.notes.iter().filter(is_merge).count();
            }
            Err(Error::NothingToSend) => assert!(pairs.calls.is_empty(), "seed {seed}"),
            Err(error) => assert!(pairs.open().is_some(), "seed {seed}: {error}"),
        }
    }
    assert!(
        built > 1_000 && refused > 1_000 && merges > 1_000,
        "{built} {refused} {merges}"
    );
    match validate(requests.as_bytes()) {
        Some(said) => assert_eq!(said, ""),
        None => println!("skipped: no python3"),
    }
}
