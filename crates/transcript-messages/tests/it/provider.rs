//! The rules of each provider, and the repair of messages that break them.

use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use transcript_format::object::Raw;
use transcript_messages::{
    Block, BlockKind, Log, Message, Part, Provider, Role, Rule, SyntheticKind, lint, lint_for,
    make_strict, make_strict_part, within_request_limits,
};
use transcript_testkit::rng::Rng;

const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const PDF: &str = "JVBERi0xLjcKMSAwIG9iagpzdGFydHhyZWYKOQolJUVPRg==";

/// A message whose blocks have the number of the message as their origin.
fn message(number: usize, role: Role, content: &[Value]) -> Message {
    let read = |block: &Value| {
        let json = block.to_string();
        Block::read(Raw::parse(&json).unwrap()).with_origin(Some(number))
    };
    Message::new(role, content.iter().map(read).collect())
}

fn talk(contents: &[(Role, Vec<Value>)]) -> Vec<Message> {
    let contents = contents.iter().enumerate();
    contents
        .map(|(number, (role, content))| message(number, *role, content))
        .collect()
}

fn strict(messages: &[Message], provider: Provider) -> (Vec<Message>, Log) {
    let mut log = Log::default();
    let made = make_strict_part(messages.to_vec(), Part::WHOLE, provider, &mut log);
    (made, log)
}

fn values(message: &Message) -> Vec<Value> {
    let blocks = message.blocks().iter();
    blocks
        .map(|block| serde_json::from_str(block.json()).unwrap())
        .collect()
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image() -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}})
}

fn pdf() -> Value {
    json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}})
}

fn text_document(len: usize) -> Value {
    json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x".repeat(len)}})
}

/// An image of this many characters of base64, with white space behind its end.
fn image_of(len: usize) -> Value {
    let mut bytes = STANDARD.decode(PIXEL).unwrap();
    bytes.resize(len / 4 * 3, 0);
    let data = STANDARD.encode(bytes);
    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}})
}

fn named(kind: &str, source: &Value) -> Value {
    json!({"type": kind, "source": source})
}

fn url(kind: &str) -> Value {
    named(
        kind,
        &json!({"type": "url", "url": "https://example.org/a"}),
    )
}

fn call(id: &str, name: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": {}})
}

fn result(id: &str, content: &Value) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": content})
}

fn api_call(name: &str) -> Value {
    json!({"type": "server_tool_use", "id": "s1", "name": name, "input": {"query": "leap years"}})
}

fn api_result(tool: &str, content: &Value) -> Value {
    json!({"type": format!("{tool}_tool_result"), "tool_use_id": "s1", "content": content})
}

fn found() -> Value {
    json!([{"type": "web_search_result", "title": "Leap years", "url": "https://example.org", "encrypted_content": "SECRET"}])
}

/// A conversation with these blocks in its first message of the user, or in an answer.
fn with(role: Role, blocks: Vec<Value>) -> Vec<Message> {
    match role {
        Role::Assistant => talk(&[
            (Role::User, vec![text("Q")]),
            (role, blocks),
            (Role::User, vec![text("R")]),
        ]),
        _ => talk(&[(role, blocks), (Role::Assistant, vec![text("A")])]),
    }
}

/// A conversation with a call and its result.
fn called(id: &str, name: &str, content: &Value) -> Vec<Message> {
    talk(&[
        (Role::User, vec![text("Q")]),
        (Role::Assistant, vec![call(id, name)]),
        (Role::User, vec![result(id, content)]),
    ])
}

fn rules(messages: &[Message], provider: Provider) -> Vec<Rule> {
    let problems = lint_for(messages, provider).problems;
    problems.iter().map(|problem| problem.rule).collect()
}

#[test]
fn each_provider_has_objections_of_its_own_and_none_to_requests_made_for_it() {
    let (user, assistant) = (Role::User, Role::Assistant);
    let long = "x".repeat(65);
    let typeless = |key: &str| json!({key: {"a": 1}});
    let reference = json!([{"type": "tool_reference", "tool_name": "mcp__x"}]);
    let file = json!({"type": "file", "file_id": "f1"});
    // The messages, and the objections of the Messages API, of Converse and of Vertex AI.
    let rows: Vec<(Vec<Message>, [&[Rule]; 3])> = vec![
        (called("a", "Bash", &json!("ok")), [&[], &[], &[]]),
        (
            called(&long, "Bash", &json!("ok")),
            [&[], &[Rule::CallId], &[]],
        ),
        (
            called("a.b:c", "Bash", &json!("ok")),
            [&[Rule::CallId], &[], &[Rule::CallId]],
        ),
        (
            called("a", "mcp__a.b", &json!("ok")),
            [&[], &[Rule::CallName], &[]],
        ),
        (
            called("a", &long, &json!("ok")),
            [&[], &[Rule::CallName], &[]],
        ),
        (
            called("a", "Bash", &reference),
            [&[], &[Rule::ResultContent], &[]],
        ),
        (
            called("a", "Bash", &json!([url("image")])),
            [&[], &[Rule::MediaAddress], &[Rule::MediaAddress]],
        ),
        (
            called(
                "a",
                "Bash",
                &json!([{"type": "search_result", "source": "u", "title": "t", "content": [text("x")]}]),
            ),
            [&[], &[], &[]],
        ),
        (
            called("a", "Bash", &json!([typeless("video")])),
            [&[Rule::NoBlock], &[], &[Rule::NoBlock]],
        ),
        (
            called("a", "Bash", &json!([typeless("cachePoint")])),
            [&[Rule::NoBlock], &[Rule::ResultContent], &[Rule::NoBlock]],
        ),
        (
            with(user, vec![text("Q"), url("image"), url("document")]),
            [&[], &[Rule::MediaAddress; 2], &[Rule::MediaAddress; 2]],
        ),
        (
            with(
                user,
                vec![text("Q"), named("image", &file), named("document", &file)],
            ),
            [&[], &[Rule::MediaAddress; 2], &[Rule::MediaAddress; 2]],
        ),
        (
            with(
                user,
                vec![
                    text("Q"),
                    json!({"type": "container_upload", "file_id": "f1"}),
                ],
            ),
            [&[], &[Rule::MediaAddress], &[Rule::MediaAddress]],
        ),
        (with(user, vec![image_of(5_000_000)]), [&[], &[], &[]]),
        (
            with(user, vec![image_of(5_000_004)]),
            [&[], &[Rule::MediaTooLarge], &[]],
        ),
        (
            with(user, vec![text("Q"), text_document(4_500_000)]),
            [&[], &[], &[]],
        ),
        (
            with(user, vec![text("Q"), text_document(4_500_001)]),
            [&[], &[Rule::MediaTooLarge], &[]],
        ),
        (with(user, vec![image(); 20]), [&[], &[], &[]]),
        (
            with(user, vec![image(); 21]),
            [&[], &[Rule::MessageMedia], &[]],
        ),
        (
            with(user, [vec![text("Q")], vec![pdf(); 5]].concat()),
            [&[], &[], &[]],
        ),
        (
            with(user, [vec![text("Q")], vec![pdf(); 6]].concat()),
            [&[], &[Rule::MessageMedia], &[]],
        ),
        (
            with(user, vec![pdf(), image()]),
            [&[], &[Rule::DocumentText], &[]],
        ),
        (
            with(
                assistant,
                vec![
                    api_call("web_search"),
                    api_result("web_search", &found()),
                    text("A"),
                ],
            ),
            [&[], &[Rule::ApiTool; 2], &[]],
        ),
        (
            with(
                assistant,
                vec![
                    api_call("web_fetch"),
                    api_result("web_fetch", &found()),
                    text("A"),
                ],
            ),
            [&[], &[Rule::ApiTool; 2], &[Rule::ApiTool; 2]],
        ),
        (
            with(
                assistant,
                vec![
                    json!({"type": "mcp_tool_use", "id": "s1", "name": "web_search", "input": {}}),
                    api_result("mcp", &json!("x")),
                    text("A"),
                ],
            ),
            [&[], &[Rule::ApiTool; 2], &[Rule::ApiTool; 2]],
        ),
        (
            with(
                user,
                vec![
                    text("Q"),
                    typeless("video"),
                    typeless("guardContent"),
                    typeless("cachePoint"),
                ],
            ),
            [&[Rule::NoBlock; 3], &[], &[Rule::NoBlock; 3]],
        ),
        (
            with(assistant, vec![typeless("reasoningContent"), text("A")]),
            [&[Rule::NoBlock], &[], &[Rule::NoBlock]],
        ),
        (
            with(
                user,
                vec![
                    text("Q"),
                    json!({"video": {}, "other": 1}),
                    typeless("other"),
                ],
            ),
            [&[Rule::NoBlock; 2]; 3],
        ),
        (
            talk(&[
                (user, vec![text("Q")]),
                (Role::System, vec![text("S")]),
                (assistant, vec![text("A")]),
            ]),
            [&[], &[Rule::SystemPlace], &[]],
        ),
    ];
    for (number, (messages, expected)) in rows.iter().enumerate() {
        assert_eq!(lint(messages), lint_for(messages, Provider::Messages));
        for (provider, expected) in Provider::ALL.into_iter().zip(expected) {
            let what = format!("row {number}, {}", provider.name());
            assert_eq!(rules(messages, provider), *expected, "{what}");
            let (made, log) = strict(messages, provider);
            assert_eq!(rules(&made, provider), [], "{what}");
            let reasons = log.omissions.iter().map(|one| one.reason.name());
            let is_logged = |rule: &Rule| {
                reasons.clone().any(|reason| reason == rule.name())
                    || matches!(rule, Rule::SystemPlace | Rule::DocumentText)
            };
            assert!(expected.iter().all(is_logged), "{what}");
            if expected.is_empty() {
                assert_eq!(made, *messages, "{what}");
            }
        }
        let (mut log, (made, _)) = (Log::default(), strict(messages, Provider::Messages));
        assert_eq!(make_strict(messages.clone(), &mut log), made);
    }
}

#[test]
fn the_size_of_a_request_is_that_of_its_provider() {
    let messages = with(
        Role::User,
        [vec![text("Q")], vec![image_of(4_900_000); 7]].concat(),
    );
    for (provider, count, is_too_large) in [
        (Provider::Messages, 6, true),
        // In steps of an eighth of the limit: one is enough for it, and not for the step.
        (Provider::Vertex, 5, true),
        (Provider::Converse, 6, true),
    ] {
        let warnings = lint_for(&messages, provider).warnings;
        let too_large = warnings.iter().filter(|one| one.rule == Rule::RequestSize);
        assert_eq!(too_large.count() == 1, is_too_large);
        let mut made = strict(&messages, provider).0;
        let mut log = Log::default();
        within_request_limits(&mut made, provider, &mut log);
        let kinds = made[0].blocks().iter().map(Block::kind);
        assert_eq!(
            kinds.filter(|kind| *kind == BlockKind::Image).count(),
            count
        );
    }
    // Between the limits of the two.
    let messages = with(
        Role::User,
        [
            vec![text("Q")],
            vec![image_of(4_900_000); 6],
            vec![image_of(1_200_000)],
        ]
        .concat(),
    );
    for (provider, count) in [(Provider::Messages, 7), (Provider::Vertex, 6)] {
        let mut made = messages.clone();
        let mut log = Log::default();
        within_request_limits(&mut made, provider, &mut log);
        let kinds = made[0].blocks().iter().map(Block::kind);
        assert_eq!(
            kinds.filter(|kind| *kind == BlockKind::Image).count(),
            count
        );
        let warnings = lint_for(&messages, provider).warnings;
        assert_eq!(warnings.len(), 7 - count);
        for warning in warnings {
            assert!(warning.rule.words_for(provider).contains("30 MB"));
        }
    }
}

#[test]
fn messages_that_a_provider_refuses_become_valid() {
    let converse = Provider::Converse;
    // The name of a call, and its id, which its result follows.
    let id = "x".repeat(65);
    let (made, log) = strict(&called(&id, "mcp__a.b/c", &json!("ok")), converse);
    let (call, result) = (&values(&made[1])[0], &values(&made[2])[0]);
    assert_eq!(call["name"], "mcp__a_b_c");
    assert_eq!(call["id"], result["tool_use_id"]);
    assert_eq!(result["content"], "ok");
    assert_eq!(log.synthetic, []);

    // Names that become the same do not matter: results go by the id.
    let messages = talk(&[
        (Role::User, vec![text("Q")]),
        (
            Role::Assistant,
            vec![self::call("a", "x.y"), self::call("b", "x/y")],
        ),
        (
            Role::User,
            vec![
                self::result("a", &json!("1")),
                self::result("b", &json!("2")),
            ],
        ),
    ]);
    let made = strict(&messages, converse).0;
    assert_eq!(made[2], messages[2]);
    assert!(values(&made[1]).iter().all(|call| call["name"] == "x_y"));

    // The texts of a result of a tool of the API stay, and nothing that is encrypted.
    let answer = vec![
        api_call("web_search"),
        api_result("web_search", &found()),
        text("A"),
    ];
    let (made, log) = strict(&with(Role::Assistant, answer), converse);
    let note = "[result of a tool that the API ran: web_search:\nLeap years\nhttps://example.org]";
    assert_eq!(values(&made[1]), [text(note), text("A")]);
    let made_up = log.synthetic.iter().map(|one| (one.kind, one.role));
    assert_eq!(
        made_up.collect::<Vec<_>>(),
        [(SyntheticKind::ApiToolNote, Role::Assistant)]
    );
    let fetched = json!({"type": "web_fetch_result", "url": "https://example.org", "content": text_document(3)});
    let run = json!({"type": "bash_code_execution_result", "stdout": "out", "stderr": "", "return_code": 0});
    let failed = json!({"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"});
    for (tool, content, note) in [
        ("web_fetch", &fetched, ":\nxxx\nhttps://example.org"),
        ("bash_code_execution", &run, ":\nout"),
        ("web_search", &failed, ":\nmax_uses_exceeded"),
        ("mcp", &json!([text("one"), text("two")]), ":\none\ntwo"),
        ("mcp", &json!("one"), ":\none"),
        ("mcp", &json!([]), ""),
    ] {
        let answer = vec![api_call("x"), api_result(tool, content), text("A")];
        let made = strict(&with(Role::Assistant, answer), converse).0;
        let note = format!("[result of a tool that the API ran: {tool}{note}]");
        assert_eq!(values(&made[1])[0]["text"], note);
    }

    // A reference is the name of a tool.
    let reference = json!([{"type": "tool_reference", "tool_name": "mcp__x"}]);
    let made = strict(&called("a", "ToolSearch", &reference), converse).0;
    assert_eq!(values(&made[2])[0]["content"], json!([text("mcp__x")]));

    // An address is in the note.
    let (made, log) = strict(&with(Role::User, vec![url("document")]), Provider::Vertex);
    assert_eq!(
        values(&made[0])[0]["text"],
        "[media left out: a document named by an address or a file id (https://example.org/a), which the API does not read]"
    );
    assert_eq!(log.synthetic[0].kind, SyntheticKind::MediaNote);

    // A system message is text of the user, at its place.
    let system = talk(&[
        (Role::System, vec![text("S0")]),
        (Role::User, vec![text("Q")]),
        (Role::System, vec![text("S1"), text("S2")]),
        (Role::Assistant, vec![text("A")]),
        (Role::System, vec![text("S3")]),
    ]);
    let made = strict(&system, converse).0;
    let texts = |message: &Message| -> Vec<String> {
        let blocks = values(message).into_iter();
        blocks
            .map(|block| {
                let text = block["text"].as_str().unwrap();
                let text = text.replace("<system-reminder>", "");
                text.replace("</system-reminder>", "").trim().to_owned()
            })
            .collect()
    };
    assert_eq!(made.len(), 3);
    assert_eq!(texts(&made[0]), ["S0", "Q", "S1", "S2"]);
    assert_eq!(texts(&made[2]), ["S3"]);

    // An image beside a reminder stays.
    let system = talk(&[
        (Role::User, vec![text("Q")]),
        (Role::System, vec![text("S"), image()]),
    ]);
    let made = strict(&system, converse).0;
    assert_eq!(values(&made[0])[2], image());

    // The oldest images of a message give way, and a document gets a text, behind the results.
    let messages = with(Role::User, vec![image(); 23]);
    let (made, log) = strict(&messages, converse);
    let kinds: Vec<BlockKind> = made[0].blocks().iter().map(Block::kind).collect();
    assert_eq!(kinds[..3], [BlockKind::Text; 3]);
    assert_eq!(kinds[3..], [BlockKind::Image; 20]);
    assert_eq!(log.omissions.len(), 3);
    let messages = talk(&[
        (Role::User, vec![text("Q")]),
        (Role::Assistant, vec![self::call("a", "Read")]),
        (
            Role::User,
            vec![
                self::result("a", &json!("ok")),
                pdf(),
                json!({"cachePoint": {}}),
            ],
        ),
    ]);
    let (made, log) = strict(&messages, converse);
    assert_eq!(
        values(&made[2])[1..],
        [
            text("(a document without a text)"),
            pdf(),
            json!({"cachePoint": {}})
        ]
    );
    assert_eq!(log.synthetic[0].kind, SyntheticKind::DocumentText);
}

#[test]
fn a_result_of_many_levels_or_texts_is_read_in_reasonable_time() {
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let deep: Value = serde_json::from_str(&deep).unwrap();
    let many: Vec<Value> = (0..20_000)
        .map(|number| text(&number.to_string()))
        .collect();
    let answer = vec![
        api_result("mcp", &deep),
        api_result("mcp", &json!(many)),
        text("A"),
    ];
    let made = strict(&with(Role::Assistant, answer), Provider::Converse).0;
    let texts = values(&made[1]);
    assert_eq!(texts[0]["text"], "[result of a tool that the API ran: mcp]");
    let lines = texts[1]["text"].as_str().unwrap().lines();
    assert_eq!(lines.count(), 20_001);
}

// ---- generated conversations -------------------------------------------------------------------

/// Makes conversations of blocks of every kind, sound or not. Each text has a word of its own.
struct Maker {
    rng: Rng,
    words: usize,
}

impl Maker {
    fn word(&mut self) -> String {
        self.words += 1;
        format!("word{}.", self.words)
    }

    fn id(&mut self) -> String {
        let odd = ["a.b:c", "a b", "", "é"].map(str::to_owned);
        match self.rng.below(8) {
            0 => self.rng.pick(&odd).clone(),
            1 => "i".repeat(self.rng.range(63, 66)),
            _ => format!("t{}", self.rng.below(6)),
        }
    }

    fn name(&mut self) -> String {
        match self.rng.below(5) {
            0 => String::new(),
            1 => "mcp__a.b/c d".to_owned(),
            2 => "é".repeat(self.rng.range(60, 210)),
            3 => "n".repeat(self.rng.range(63, 66)),
            _ => "Bash".to_owned(),
        }
    }

    fn medium(&mut self) -> Value {
        let word = self.word();
        let kind = *self.rng.pick(&["image", "document"]);
        match self.rng.below(9) {
            0 => image(),
            1 => pdf(),
            2 => text_document(9),
            3 => url(kind),
            4 => named(kind, &json!({"type": "file", "file_id": word})),
            5 => named(
                kind,
                &json!({"type": "base64", "media_type": "image/png", "data": "QUJD"}),
            ),
            6 => named(
                "document",
                &json!({"type": "content", "content": [text(&word)]}),
            ),
            7 => json!({"type": kind}),
            _ => named(kind, &json!(7)),
        }
    }

    fn of_api(&mut self) -> Value {
        let tools = [
            "web_search",
            "web_fetch",
            "code_execution",
            "mcp",
            "tool_search",
        ];
        let tool = *self.rng.pick(&tools);
        let id = format!("s{}", self.rng.below(3));
        let word = self.word();
        match self.rng.below(6) {
            0 => json!({"type": "server_tool_use", "id": id, "name": tool, "input": {}}),
            1 => json!({"type": "mcp_tool_use", "id": id, "name": tool, "input": {}}),
            2 => json!({"type": "container_upload", "file_id": word}),
            _ => {
                let contents = [
                    json!([{"type": "web_search_result", "title": word, "url": "u"}]),
                    json!({"type": "code_execution_result", "stdout": word}),
                    json!([text(&word)]),
                    json!(word),
                    json!(7),
                ];
                let content = self.rng.pick(&contents).clone();
                json!({"type": format!("{tool}_tool_result"), "tool_use_id": id, "content": content})
            }
        }
    }

    fn of_platform(&mut self) -> Value {
        let keys = [
            "video",
            "guardContent",
            "reasoningContent",
            "cachePoint",
            "future",
        ];
        let key = *self.rng.pick(&keys);
        match self.rng.below(4) {
            0 => json!({key: {}, "text": self.word()}),
            1 => json!({"type": key}),
            _ => json!({key: {"a": 1}}),
        }
    }

    fn block(&mut self) -> Value {
        match self.rng.below(14) {
            0..=2 => text(&self.word()),
            3 => text(" "),
            4 | 5 => call(&self.id(), &self.name()),
            6 | 7 => {
                let count = self.rng.below(3);
                let inner: Vec<Value> = (0..count).map(|_| self.inner()).collect();
                let contents = [json!(self.word()), json!(inner), json!(inner), Value::Null];
                let content = self.rng.pick(&contents).clone();
                result(&self.id(), &content)
            }
            8 | 9 => self.medium(),
            10 => self.of_api(),
            11 => self.of_platform(),
            12 => {
                let thoughts = [
                    json!({"type": "thinking", "thinking": "hm", "signature": "s"}),
                    json!({"type": "thinking", "thinking": "hm"}),
                    json!({"type": "redacted_thinking", "data": "x"}),
                ];
                self.rng.pick(&thoughts).clone()
            }
            _ => {
                let others = [json!(7), json!("bare"), json!({"type": "hologram"})];
                self.rng.pick(&others).clone()
            }
        }
    }

    fn inner(&mut self) -> Value {
        match self.rng.below(6) {
            0 => json!({"type": "tool_reference", "tool_name": self.word()}),
            1 => self.medium(),
            2 => self.of_platform(),
            3 => self.of_api(),
            4 => json!({"type": "resource", "resource": {"text": self.word()}}),
            _ => text(&self.word()),
        }
    }

    fn conversation(&mut self) -> Vec<Message> {
        let count = self.rng.range(1, 8);
        let roles = [
            Role::User,
            Role::User,
            Role::Assistant,
            Role::Assistant,
            Role::System,
        ];
        let contents: Vec<(Role, Vec<Value>)> = (0..count)
            .map(|_| {
                let role = *self.rng.pick(&roles);
                let mut content: Vec<Value> =
                    (0..self.rng.range(0, 5)).map(|_| self.block()).collect();
                if self.rng.one_in(8) {
                    let medium = [image(), pdf()][self.rng.below(2)].clone();
                    content.extend(vec![medium; self.rng.range(4, 24)]);
                }
                (role, content)
            })
            .collect();
        talk(&contents)
    }
}

/// Returns the words of texts: those of text blocks, and of results of tools of the API.
fn words(message: &Message) -> Vec<String> {
    let json: String = message.blocks().iter().map(Block::json).collect();
    let starts = json.match_indices("word");
    starts
        .filter_map(|(at, _)| Some(json[at..].split_once('.')?.0.to_owned()))
        .collect()
}

#[test]
fn no_provider_objects_to_requests_made_for_it_of_any_messages() {
    let mut found: HashSet<(Provider, Rule)> = HashSet::new();
    for seed in 0..3_000 {
        let mut maker = Maker {
            rng: Rng::new(seed),
            words: 0,
        };
        let messages = maker.conversation();
        for provider in Provider::ALL {
            found.extend(
                rules(&messages, provider)
                    .into_iter()
                    .map(|rule| (provider, rule)),
            );
            let (mut made, mut log) = strict(&messages, provider);
            within_request_limits(&mut made, provider, &mut log);
            let problems = lint_for(&made, provider).problems;
            assert_eq!(problems, [], "seed {seed}, {}", provider.name());

            // Each omission is reported.
            let sent: HashSet<String> = made.iter().flat_map(words).collect();
            let omitted = log.omissions.iter().map(|omission| omission.origin);
            let omitted: HashSet<usize> = omitted.collect();
            for (number, message) in messages.iter().enumerate() {
                for word in words(message) {
                    assert!(
                        sent.contains(&word) || omitted.contains(&number),
                        "seed {seed}, {}: {word} of message {number}: {}",
                        provider.name(),
                        message.json()
                    );
                }
            }
        }
    }
    let of = |provider: Provider, rule: Rule| found.contains(&(provider, rule));
    for rule in [
        Rule::MediaAddress,
        Rule::MessageMedia,
        Rule::DocumentText,
        Rule::ApiTool,
        Rule::SystemPlace,
        Rule::CallId,
        Rule::CallName,
    ] {
        assert!(of(Provider::Converse, rule), "{rule:?}");
    }
    assert!(of(Provider::Vertex, Rule::ApiTool) && of(Provider::Vertex, Rule::MediaAddress));
    assert!(!of(Provider::Messages, Rule::ApiTool) && !of(Provider::Vertex, Rule::DocumentText));
}
