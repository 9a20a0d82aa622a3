//! Prints what agent-sessions 0.3.0 reads, as one JSON object for each session; `agents_peers.py --agent-sessions DIR` builds it.
//! Arguments: the name of the agent, and a folder in which its files are searched.

use agent_sessions::*;
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let agents = [
        ("codex", Agent::Codex),
        ("gemini", Agent::GeminiCli),
        ("opencode", Agent::OpenCode),
        ("pi", Agent::Pi),
        ("qwen", Agent::QwenCode),
        ("copilot", Agent::CopilotCli),
    ];
    let Some(agent) = arguments
        .get(1)
        .and_then(|name| agents.iter().find(|agent| agent.0 == name))
        .map(|agent| agent.1)
    else {
        eprintln!("arguments: the name of the agent, and its folder");
        std::process::exit(2);
    };
    // Its limits of 200 MiB a file and 8 MiB a line would end the comparison early.
    let options = ReadOptions {
        max_file_bytes: Some(4 << 30),
        max_line_bytes: Some(1 << 30),
        tail: TailMode::AllowIncomplete,
        ..Default::default()
    };
    let found = discover_directory(
        agent,
        std::path::Path::new(&arguments[2]),
        &DiscoverFilter {
            include_subagents: true,
            ..Default::default()
        },
    );
    for file in found.files {
        let path = file.path.display().to_string();
        if agent == Agent::OpenCode {
            for session in list_database_sessions(agent, &file.path, &options).unwrap_or_default() {
                let texts = match import_database(agent, &file.path, &session.id, &options) {
                    Ok(read) => read
                        .events
                        .into_iter()
                        .filter_map(|event| text(event.value))
                        .collect(),
                    Err(_) => Vec::new(),
                };
                print(&session.id, &texts);
            }
        } else if agent == Agent::GeminiCli {
            let texts = match import_session(agent, &file.path, &options) {
                Ok(read) => read
                    .events
                    .into_iter()
                    .filter_map(|event| text(event.value))
                    .collect(),
                Err(_) => Vec::new(),
            };
            print(&path, &texts);
        } else if let Ok(events) = read(&file, &options) {
            let texts = events.filter_map(|event| text(event.ok()?.value)).collect();
            print(&path, &texts);
        }
    }
}
fn text(event: Event) -> Option<String> {
    match event {
        Event::Message(message) if matches!(message.role, Role::User | Role::Assistant) => {
            Some(message.text)
        }
        _ => None,
    }
}
fn print(of: &str, texts: &Vec<String>) {
    println!("{}", serde_json::json!({"of": of, "texts": texts}));
}
