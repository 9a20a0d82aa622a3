//! The tables of a whole database.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use transcript_format::object::Object;

use super::rows::{Info, Revert, Row, Rows};
use crate::Error;
use crate::conversation::{Conversation, DamageKind, Holds, Part};
use crate::node::Usage;
use crate::place::{Place, SourceId};
use crate::sqlite::{Database, Failure, number, quoted, text};
use crate::strings::string;

/// Tables with rows of sessions that are known and hold no text of the conversation.
const KNOWN_TABLES: [&str; 4] = [
    "event_sequence",
    "session_context_epoch",
    "session_share",
    "todo",
];

/// The tables of a database, asked for one session.
pub(super) struct Tables<'d> {
    database: &'d Database,
    id: String,
    session: Table,
    message: Table,
    part: Table,
    event: Table,
}

/// A table, as a source of a conversation.
struct Table {
    source: SourceId,
    /// Its columns; none when there is no such table.
    columns: BTreeSet<String>,
    /// Whether rows were asked for that have no place.
    has_rows_without_place: Cell<bool>,
}

impl<'d> Tables<'d> {
    pub(super) fn open(
        database: &'d Database,
        path: &Path,
        id: &str,
        to: &mut Conversation,
    ) -> Result<Self, Failure> {
        let mut table = |name: &str| -> Result<Table, Failure> {
            let columns = database.columns(name)?;
            let source = to.add_table(path.to_owned(), name);
            if !columns.is_empty() {
                if !database.has_row_numbers(name) {
                    return Err(without_numbers(path, name).into());
                }
                to.sources[source.index()].len = len_of(database, name)?;
            }
            Ok(Table {
                source,
                columns,
                has_rows_without_place: Cell::default(),
            })
        };
        Ok(Self {
            session: table("session")?,
            message: table("message")?,
            part: table("part")?,
            event: table("event")?,
            id: id.to_owned(),
            database,
        })
    }

    /// Asks for rows: their numbers, ids, what they are of, their order and their JSON.
    fn rows(
        &self,
        of: &Table,
        question: &str,
        parameters: impl rusqlite::Params,
        take: &mut dyn FnMut(Row),
    ) -> Result<(), Failure> {
        if of.columns.is_empty() {
            return Ok(());
        }
        self.database.each(question, parameters, |row| {
            let (data, is_utf8) = text(row, 4)?;
            let Some(place) = place(of.source, row.get(0)?) else {
                of.has_rows_without_place.set(true);
                return Ok(());
            };
            take(Row {
                place,
                id: text(row, 1)?.0,
                of: text(row, 2)?.0,
                order: number(row, 3)?,
                data,
                is_utf8,
            });
            Ok(())
        })
    }

    /// Returns the session of which this one is a fork: a fork has copies of its messages, with their times.
    fn forked_from(&self, title: Option<&str>) -> Result<Option<String>, Failure> {
        if !title.is_some_and(|title| title.contains(" (fork #")) {
            return Ok(None);
        }
        let question = "SELECT other.session_id FROM message AS other \
             JOIN session ON session.id = other.session_id \
             WHERE other.session_id <> ?1 AND other.time_created = \
               (SELECT min(time_created) FROM message WHERE session_id = ?1) \
             ORDER BY session.time_created, session.id LIMIT 1";
        let mut found = None;
        self.database.each(question, [&self.id], |row| {
            found = Some(text(row, 0)?.0);
            Ok(())
        })?;
        Ok(found)
    }

    fn info(&self) -> Result<Option<(Place, Option<Info>)>, Failure> {
        const COLUMNS: [&str; 12] = [
            "parent_id",
            "directory",
            "title",
            "version",
            "model",
            "time_created",
            "time_updated",
            "revert",
            "tokens_input",
            "tokens_output",
            "tokens_reasoning",
            "tokens_cache_read",
        ];
        // Columns that a version does not have are empty.
        let column = |name: &str| {
            let found = self.session.columns.get(name);
            found.cloned().unwrap_or_else(|| "NULL".to_owned())
        };
        let mut columns: Vec<String> = COLUMNS.iter().map(|name| column(name)).collect();
        columns.push(column("tokens_cache_write"));
        let question = format!(
            "SELECT rowid, {} FROM session WHERE id = ?1",
            columns.join(", ")
        );
        let has_usage = self.session.columns.contains("tokens_input");
        let mut found = None;
        self.database.each(&question, [&self.id], |row| {
            let field = |at: usize| -> rusqlite::Result<Option<String>> {
                Ok(Some(text(row, at)?.0).filter(|text| !text.is_empty()))
            };
            let tokens = |at| -> rusqlite::Result<u64> {
                Ok(u64::try_from(number(row, at)?).unwrap_or_default())
            };
            let of_json = |text: Option<String>, read: &dyn Fn(&Object<'_>) -> Option<String>| {
                let text = text?;
                Object::parse(&text).ok().and_then(|object| read(&object))
            };
            let revert = field(8)?;
            let revert = revert.as_deref().and_then(|text| Object::parse(text).ok());
            let usage = Usage {
                input: tokens(9)?,
                output: tokens(10)?,
                reasoning: tokens(11)?,
                cache_read: tokens(12)?,
                cache_write: tokens(13)?,
            }
            .of_separate_thoughts();
            let info = Info {
                parent: field(1)?,
                directory: field(2)?,
                title: field(3)?,
                version: field(4)?,
                model: of_json(field(5)?, &|model| string(model, "id")),
                created: field(6)?,
                updated: field(7)?,
                usage: Some(usage).filter(|_| has_usage),
                revert: revert.as_ref().and_then(Revert::of_json),
                forked_from: None,
            };
            let place = place(self.session.source, row.get(0)?);
            found = place.map(|place| (place, Some(info)));
            Ok(())
        })?;
        Ok(found)
    }
}

impl Rows for Tables<'_> {
    type Error = Failure;

    fn is_damaged(&self) -> bool {
        false
    }

    fn session(&mut self) -> Result<Option<(Place, Option<Info>)>, Failure> {
        if self.session.columns.is_empty() {
            return Ok(None);
        }
        let mut found = self.info()?;
        if let Some((_, Some(info))) = &mut found {
            info.forked_from = self.forked_from(info.title.as_deref())?;
        }
        Ok(found)
    }

    fn messages(&mut self) -> Result<Vec<Place>, Failure> {
        let question = "SELECT rowid, '', '', 0, '' FROM message \
             WHERE session_id = ?1 ORDER BY time_created, id";
        let mut places = Vec::new();
        self.rows(&self.message, question, [&self.id], &mut |row| {
            places.push(row.place);
        })?;
        Ok(places)
    }

    fn message(&mut self, place: Place) -> Result<Option<Row>, Failure> {
        let question = "SELECT rowid, id, '', time_created, data FROM message WHERE rowid = ?1";
        let mut found = None;
        if let Ok(number) = i64::try_from(place.offset) {
            self.rows(&self.message, question, [number], &mut |row| {
                found = Some(row);
            })?;
        }
        Ok(found)
    }

    fn text_sources(&self) -> Option<[SourceId; 2]> {
        Some([self.part.source, self.event.source])
    }

    fn load(&mut self, row: Row) -> Result<Row, Failure> {
        let tables = [
            (&self.message, "message"),
            (&self.part, "part"),
            (&self.event, "event"),
        ];
        let table = tables
            .into_iter()
            .find(|(table, _)| table.source == row.place.source);
        let (Some((_, name)), Ok(number)) = (table, i64::try_from(row.place.offset)) else {
            return Ok(row);
        };
        let mut row = row;
        let question = format!("SELECT data FROM {name} WHERE rowid = ?1");
        self.database.each(&question, [number], |found| {
            (row.data, row.is_utf8) = text(found, 0)?;
            Ok(())
        })?;
        Ok(row)
    }

    fn parts(&mut self, message: &str, take: &mut dyn FnMut(Row)) -> Result<(), Failure> {
        let question = "SELECT rowid, id, message_id, time_created, data FROM part \
             WHERE message_id = ?1 AND session_id = ?2 ORDER BY id";
        self.rows(&self.part, question, [message, &self.id], take)
    }

    fn lost_parts(&mut self, known: &[u64]) -> Result<Vec<Row>, Failure> {
        if self.part.columns.is_empty() {
            return Ok(Vec::new());
        }
        let mut lost = Vec::new();
        let question = "SELECT rowid FROM part WHERE session_id = ?1";
        self.database.each(question, [&self.id], |row| {
            let number: i64 = row.get(0)?;
            let place = place(self.part.source, number);
            let is_lost = |place: &Place| known.binary_search(&place.offset).is_err();
            lost.extend(place.filter(is_lost).map(|_| number));
            Ok(())
        })?;
        let question =
            "SELECT rowid, id, message_id, time_created, data FROM part WHERE rowid = ?1";
        let mut rows = Vec::new();
        for number in lost {
            self.rows(&self.part, question, [number], &mut |row| rows.push(row))?;
        }
        Ok(rows)
    }

    fn events(&mut self, take: &mut dyn FnMut(Row)) -> Result<(), Failure> {
        let question = "SELECT rowid, id, type, seq, data FROM event \
             WHERE aggregate_id = ?1 ORDER BY seq";
        self.rows(&self.event, question, [&self.id], take)
    }

    fn others(&mut self, to: &mut Conversation) -> Result<(), Failure> {
        for table in [&self.session, &self.message, &self.part, &self.event] {
            if table.has_rows_without_place.get() {
                let start = Place {
                    source: table.source,
                    offset: 0,
                    len: 0,
                };
                to.report(start, DamageKind::RowsWithoutPlace);
            }
        }
        let path = to.source(self.session.source).path.clone();
        for name in self.database.tables()? {
            let columns = self.database.columns(&name)?;
            let is_read = ["session", "message", "part", "event"].contains(&&*name);
            let of_session = ["session_id", "aggregate_id"];
            let key = of_session.into_iter().find(|key| columns.contains(*key));
            let Some(key) = key.filter(|_| !is_read) else {
                continue;
            };
            let quoted = quoted(&name);
            if !self.database.has_row_numbers(&name) {
                // Its rows have no place, so they are counted and not mapped.
                let question = format!("SELECT 1 FROM {quoted} WHERE {key} = ?1");
                self.database.each(&question, [&self.id], |_| {
                    to.unknown(&name);
                    Ok(())
                })?;
                continue;
            }
            let source = to.add_table(path.clone(), &name);
            let mut places = Vec::new();
            let question = format!("SELECT rowid FROM {quoted} WHERE {key} = ?1 ORDER BY rowid");
            self.database.each(&question, [&self.id], |row| {
                places.extend(place(source, row.get(0)?));
                Ok(())
            })?;
            to.sources[source.index()].len = len_of(self.database, &name)?;
            for place in places {
                let holds = if KNOWN_TABLES.contains(&&*name) {
                    Holds::Raw(name.clone().into())
                } else {
                    to.unknown(&name)
                };
                to.parts.push(Part { place, holds });
            }
        }
        Ok(())
    }
}

/// Returns that the rows of a table cannot be told apart.
fn without_numbers(path: &Path, table: &str) -> Error {
    let reason = format!(
        "the rows of its table {table} have no numbers, and OpenCode writes none like that; export the session with OpenCode"
    );
    Error::at(path)(io::Error::new(io::ErrorKind::Unsupported, reason))
}

/// Returns the place of a row. Numbers below zero, which SQLite gives only on request, are not read.
fn place(source: SourceId, number: i64) -> Option<Place> {
    Some(Place {
        source,
        offset: u64::try_from(number).ok()?,
        len: 1,
    })
}

/// Returns the length of a table as a source: its highest row number, and one more.
fn len_of(database: &Database, table: &str) -> Result<u64, Failure> {
    let mut len = 0;
    let question = format!("SELECT max(rowid) FROM {}", quoted(table));
    database.each(&question, [], |row| {
        let highest: Option<i64> = row.get(0)?;
        let highest = highest.and_then(|highest| u64::try_from(highest).ok());
        len = highest.map_or(0, |highest| highest + 1);
        Ok(())
    })?;
    Ok(len)
}
