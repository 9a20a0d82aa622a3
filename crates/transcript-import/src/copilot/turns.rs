//! The turns that a rewind cut out of the log: the database of all sessions still has their texts.
//!
//! Turns are never removed there and go on counting, so those that were cut lie beside those that took their place. A turn is
//! in the log if both of its texts are.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::events::{DATABASE, FOLDER, Step};
use crate::Error;
use crate::content::NewContent;
use crate::conversation::{BranchKind, Conversation, DamageKind, Holds, NewNode, NodeId, Part};
use crate::dialect::Session;
use crate::gaps::fill_gaps;
use crate::node::NodeKind;
use crate::place::{Place, SourceId};
use crate::source::{Store, name_of};
use crate::sqlite::{Copied, Copies, Database, Failure, Value, number, text};
use crate::state::FileState;
use crate::text::Text;
use crate::version::{Version, Versions};

/// A turn: a prompt and the text that the model answered.
struct Turn {
    /// The number of its row.
    row: u64,
    /// Its number in the session.
    number: i64,
    prompt: String,
    answer: String,
    time: String,
}

/// The turns of a session that a database has.
#[derive(Default)]
struct Turns {
    turns: Vec<Turn>,
    /// The length of the table as a source.
    len: u64,
    damage: Option<DamageKind>,
}

/// Adds the turns that are not in the log as branches.
pub(super) fn read(
    copies: &Copies,
    store: Store<'_>,
    session: &Session,
    to: &mut Conversation,
    steps: &[Step],
) -> Result<(), Error> {
    let Some(path) = database_of(session).filter(|path| store.disk.is_file(path)) else {
        return Ok(());
    };
    let source = to.add_table(path.clone(), "turns");
    let copied = copies.get(store, &path).map_err(Failure::from);
    let found =
        copied.and_then(
            |copied| match copied.ask(|database| turns(database, &session.id)) {
                Err(Failure::Damaged) => Ok(salvaged(&copied, store, &path, &session.id)?),
                found => found,
            },
        );
    // The log has the conversation, so a session is read without its turns as well.
    let found = found.unwrap_or_else(|_| Turns {
        damage: Some(DamageKind::UnreadableDatabase),
        ..Turns::default()
    });
    if let Some(damage) = found.damage {
        to.report(place(source, 0, 0), damage);
    }
    to.sources[source.index()].len = found.len;
    let mut turns = found.turns;
    turns.sort_by_key(|turn| turn.number);
    let log = Log::of(to, steps)?;
    let mut cut: Vec<NodeId> = Vec::new();
    for turn in &turns {
        let nodes = if log.has(turn) {
            Vec::new()
        } else {
            add(to, source, turn)
        };
        let holds = if nodes.is_empty() {
            to.branch(BranchKind::Rewound, std::mem::take(&mut cut));
            Holds::Raw("turn".into())
        } else {
            Holds::Nodes(nodes.clone().into())
        };
        let place = place(source, turn.row, 1);
        to.parts.push(Part { place, holds });
        cut.extend(nodes);
    }
    to.branch(BranchKind::Rewound, cut);
    fill_gaps(to);
    Ok(())
}

fn place(source: SourceId, row: u64, len: u64) -> Place {
    Place {
        source,
        offset: row,
        len,
    }
}

/// Returns the database of the home folder that a session lies in.
fn database_of(session: &Session) -> Option<PathBuf> {
    let folder = session.files.first()?.parent()?.parent()?;
    let is_in_home = name_of(folder) == FOLDER;
    folder
        .parent()
        .filter(|_| is_in_home)
        .map(|home| home.join(DATABASE))
}

/// Returns for each session a number that changes with its turns, and the files of the database as they were before; no session when
/// the database is damaged.
pub(crate) fn versions(
    copies: &Copies,
    store: Store<'_>,
    path: &Path,
) -> Result<(Versions, Vec<FileState>), Error> {
    let copied = copies.get(store, path)?;
    let versions = match copied.ask(all_versions) {
        Ok(versions) => versions,
        Err(Failure::Damaged) => Versions::new(),
        Err(Failure::Other(error)) => return Err(error),
    };
    Ok((versions, copied.files().to_vec()))
}

fn all_versions(database: &Database) -> Result<Versions, Failure> {
    let mut rows: HashMap<String, Vec<i64>> = HashMap::new();
    let columns = database.columns("turns")?;
    let texts = ["user_message", "assistant_response"];
    if !texts
        .iter()
        .chain(&["session_id"])
        .all(|column| columns.contains(*column))
    {
        return Ok(Versions::new());
    }
    let [prompt, answer] = texts.map(|text| format!("octet_length({text})"));
    let question =
        format!("SELECT session_id, rowid, {prompt}, {answer} FROM turns ORDER BY rowid");
    database.each(&question, [], |row| {
        let numbers = (1..4_usize).map(|column| row.get::<_, Option<i64>>(column));
        let numbers = numbers.collect::<Result<Vec<_>, _>>()?.into_iter();
        let of_session = rows.entry(text(row, 0)?.0).or_default();
        of_session.extend(numbers.map(Option::unwrap_or_default));
        Ok(())
    })?;
    let versions = rows.into_iter();
    Ok(versions
        .map(|(id, rows)| (id, Version::of(&rows)))
        .collect())
}

/// Returns the turns of a session.
fn turns(database: &Database, id: &str) -> Result<Turns, Failure> {
    let mut found = Turns::default();
    let columns = database.columns("turns")?;
    let has = |column: &&str| columns.contains(*column);
    if ![
        "session_id",
        "turn_index",
        "user_message",
        "assistant_response",
    ]
    .iter()
    .all(has)
    {
        return Ok(found);
    }
    let time = if has(&"timestamp") { "timestamp" } else { "''" };
    let question = format!(
        "SELECT rowid, turn_index, user_message, assistant_response, {time} FROM turns WHERE session_id = ?1"
    );
    database.each(&question, [id], |row| {
        // Numbers below zero are given only on request.
        let Ok(of_row) = u64::try_from(row.get::<_, i64>(0)?) else {
            found.damage = Some(DamageKind::RowsWithoutPlace);
            return Ok(());
        };
        found.turns.push(Turn {
            row: of_row,
            number: number(row, 1)?,
            prompt: text(row, 2)?.0,
            answer: text(row, 3)?.0,
            time: text(row, 4)?.0,
        });
        Ok(())
    })?;
    database.each("SELECT max(rowid) FROM turns", [], |row| {
        let highest = row.get::<_, Option<i64>>(0)?;
        let highest = highest.and_then(|highest| u64::try_from(highest).ok());
        found.len = highest.map_or(0, |highest| highest + 1);
        Ok(())
    })?;
    Ok(found)
}

/// A row of a turn in a page: its number, which is that of the row, the id of the session, the number of the turn, and texts.
fn row_of_turn(values: &[Value]) -> Option<(&[u8], i64, [&Value; 3])> {
    match values {
        [
            Value::Other,
            Value::Text(session),
            Value::Integer(number),
            prompt,
            answer,
            time,
        ] => Some((session, *number, [prompt, answer, time])),
        _ => None,
    }
}

/// Returns the turns of a session in the pages of a damaged database.
fn salvaged(copied: &Copied, store: Store<'_>, path: &Path, id: &str) -> Result<Turns, Error> {
    let salvage = copied.salvage(store, path, |row| Some(row_of_turn(row)?.0))?;
    let mut turns: Vec<Turn> = Vec::new();
    let mut rows = HashSet::new();
    salvage.rows_near(path, id, |row| {
        let turn = row_of_turn(&row.values).filter(|(session, ..)| *session == id.as_bytes());
        let number_of_row = u64::try_from(row.rowid).ok();
        let Some((row, (_, number, texts))) = number_of_row.zip(turn) else {
            return;
        };
        let text = |value: &Value| match value {
            Value::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            _ => String::new(),
        };
        let [prompt, answer, time] = texts.map(text);
        if rows.insert(row) {
            turns.push(Turn {
                row,
                number,
                prompt,
                answer,
                time,
            });
        }
    })?;
    Ok(Turns {
        len: turns
            .iter()
            .map(|turn| turn.row + 1)
            .max()
            .unwrap_or_default(),
        turns,
        damage: Some(DamageKind::DamagedPage),
    })
}

/// The texts of a log.
struct Log {
    prompts: HashSet<String>,
    answers: HashSet<String>,
}

impl Log {
    fn of(to: &Conversation, steps: &[Step]) -> Result<Self, Error> {
        let mut log = Self {
            prompts: HashSet::new(),
            answers: HashSet::new(),
        };
        for step in steps {
            let Step::Node(node, typed) = step else {
                continue;
            };
            if let Some(typed) = typed {
                log.prompts.insert(to.text(typed)?);
            } else if to.node(*node).kind == NodeKind::Assistant
                && let Some(text) = to.stored(*node).text
            {
                log.answers.insert(to.text(text)?);
            }
        }
        Ok(log)
    }

    /// Returns whether both texts of a turn are in the log. An answer may be several messages, one after the other.
    fn has(&self, turn: &Turn) -> bool {
        let answer = &*turn.answer;
        let begins = || self.answers.iter().any(|said| answer.starts_with(&**said));
        let ends = || self.answers.iter().any(|said| answer.ends_with(&**said));
        let has_answer = answer.is_empty() || self.answers.contains(answer) || begins() && ends();
        has_answer && (turn.prompt.is_empty() || self.prompts.contains(&turn.prompt))
    }
}

fn add(to: &mut Conversation, source: SourceId, turn: &Turn) -> Vec<NodeId> {
    let texts = [
        (NodeKind::User, &turn.prompt),
        (NodeKind::Assistant, &turn.answer),
    ];
    let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
    let nodes = texts.map(|(kind, text)| {
        let mut node = NewNode::new(kind, NewContent::text(Text::held(text)));
        node.origin = Some(place(source, turn.row, 1));
        node.time = Some(turn.time.as_str().into());
        to.add(node)
    });
    nodes.collect()
}
