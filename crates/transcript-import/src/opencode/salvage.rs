//! The rows of a damaged database, recognised by their form: neither the schema nor the indexes are needed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use super::rows::{Info, Messages, Row, Rows};
use crate::Error;
use crate::conversation::{Conversation, DamageKind, Holds, Part};
use crate::place::{Place, SourceId};
use crate::sqlite::{PageDamage, Salvage, Value};

/// The rows of one session.
pub(super) struct Salvaged {
    session: Option<Place>,
    messages: Messages,
    parts: HashMap<String, Vec<Row>>,
    events: Vec<Row>,
}

/// A row, by the table whose form it has.
enum Found<'a> {
    Session {
        id: &'a [u8],
    },
    Message {
        id: &'a [u8],
        session: &'a [u8],
        times: [i64; 2],
        data: &'a [u8],
    },
    Part {
        id: &'a [u8],
        message: &'a [u8],
        session: &'a [u8],
        times: [i64; 2],
        data: &'a [u8],
    },
    Event {
        id: &'a [u8],
        session: &'a [u8],
        number: i64,
        kind: &'a [u8],
        data: &'a [u8],
    },
}

/// Returns which row of OpenCode a row is; `None` for another one.
fn found(values: &[Value]) -> Option<Found<'_>> {
    use Value::{Integer, Text};

    match values {
        [
            Text(id),
            Text(session),
            Integer(created),
            Integer(updated),
            Text(data),
            ..,
        ] if is_id(id, "msg_") && is_id(session, "ses_") => {
            let times = [*created, *updated];
            Some(Found::Message {
                id,
                session,
                times,
                data,
            })
        }
        [
            Text(id),
            Text(message),
            Text(session),
            Integer(created),
            Integer(updated),
            Text(data),
            ..,
        ] if is_id(id, "prt_") && is_id(session, "ses_") => {
            let times = [*created, *updated];
            Some(Found::Part {
                id,
                message,
                session,
                times,
                data,
            })
        }
        [
            Text(id),
            Text(session),
            Integer(number),
            Text(kind),
            Text(data),
            ..,
        ] if is_id(id, "evt_") && is_id(session, "ses_") => {
            let number = *number;
            Some(Found::Event {
                id,
                session,
                number,
                kind,
                data,
            })
        }
        // Other tables with the id of a session in front have fewer columns.
        [Text(id), Text(_), _, _, _, _, _, _, _, _, ..] if is_id(id, "ses_") => {
            Some(Found::Session { id })
        }
        _ => None,
    }
}

fn is_id(text: &[u8], prefix: &str) -> bool {
    text.starts_with(prefix.as_bytes())
}

/// Returns the id of the session that a row belongs to.
pub(super) fn session_of(values: &[Value]) -> Option<&[u8]> {
    found(values).map(|found| match found {
        Found::Session { id: session }
        | Found::Message { session, .. }
        | Found::Part { session, .. }
        | Found::Event { session, .. } => session,
    })
}

/// Returns the ids of the sessions that rows name, in the order of the ids: those begin with their times, newest first.
pub(super) fn ids(salvage: &Salvage) -> Vec<String> {
    let ids = salvage.sessions();
    let ids: BTreeSet<String> = ids.map(|id| String::from_utf8_lossy(id).into()).collect();
    ids.into_iter().rev().collect()
}

/// The sources that the tables of a database are.
struct Sources {
    session: SourceId,
    message: SourceId,
    part: SourceId,
    event: SourceId,
}

/// The newest version of each row, by its id: a page that is not used any more may still hold an older one.
#[derive(Default)]
struct Newest(BTreeMap<String, (i64, Row)>);

impl Newest {
    fn add(&mut self, updated: i64, row: Row) {
        let is_newer = |known: &(i64, Row)| updated >= known.0;
        if self.0.get(&row.id).is_none_or(is_newer) {
            self.0.insert(row.id.clone(), (updated, row));
        }
    }

    /// Returns the rows in the order of their ids; of several with one number in their table, the newest.
    fn into_rows(self) -> Vec<Row> {
        let mut by_place: HashMap<Place, i64> = HashMap::new();
        for (updated, row) in self.0.values() {
            let newest = by_place.entry(row.place).or_insert(*updated);
            *newest = (*newest).max(*updated);
        }
        let rows = self.0.into_values().filter_map(|(updated, row)| {
            // One of them takes the place.
            let newest = by_place.get(&row.place).copied()?;
            (newest == updated && by_place.remove(&row.place).is_some()).then_some(row)
        });
        rows.collect()
    }
}

impl Salvaged {
    /// Reads the rows of a session from the pages.
    pub(super) fn read(
        salvage: &Salvage,
        path: &Path,
        id: &str,
        to: &mut Conversation,
    ) -> Result<Self, Error> {
        let file = to.add_source(path.to_owned(), None);
        let sources = Sources {
            session: to.add_table(path.to_owned(), "session"),
            message: to.add_table(path.to_owned(), "message"),
            part: to.add_table(path.to_owned(), "part"),
            event: to.add_table(path.to_owned(), "event"),
        };
        let mut session = None;
        let (mut messages, mut parts, mut events) =
            (Newest::default(), Newest::default(), Newest::default());
        salvage.rows_near(path, id, |row| {
            let Ok(number) = u64::try_from(row.rowid) else {
                return;
            };
            let place = |source| Place {
                source,
                offset: number,
                len: 1,
            };
            match found(&row.values) {
                Some(Found::Session { id: of }) if of == id.as_bytes() => {
                    session = Some(place(sources.session));
                }
                Some(Found::Message {
                    id: own,
                    session,
                    times,
                    data,
                }) if session == id.as_bytes() => {
                    let row = read_row(place(sources.message), own, b"", times[0], data);
                    messages.add(times[1], row);
                }
                Some(Found::Part {
                    id: own,
                    message,
                    session,
                    times,
                    data,
                }) if session == id.as_bytes() => {
                    let row = read_row(place(sources.part), own, message, times[0], data);
                    parts.add(times[1], row);
                }
                Some(Found::Event {
                    id: own,
                    session,
                    number,
                    kind,
                    data,
                }) if session == id.as_bytes() => {
                    let row = read_row(place(sources.event), own, kind, number, data);
                    events.add(number, row);
                }
                _ => {}
            }
        })?;
        report(to, file, salvage);
        let mut events = events.into_rows();
        events.sort_by_key(|event| event.order);
        let mut by_message: HashMap<String, Vec<Row>> = HashMap::new();
        for part in parts.into_rows() {
            by_message.entry(part.of.clone()).or_default().push(part);
        }
        Ok(Self {
            session,
            messages: Messages::new(messages.into_rows()),
            parts: by_message,
            events,
        })
    }
}

fn read_row(place: Place, id: &[u8], of: &[u8], order: i64, data: &[u8]) -> Row {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Row {
        place,
        id: text(id),
        of: text(of),
        order,
        data: text(data),
        is_utf8: std::str::from_utf8(data).is_ok(),
    }
}

/// Reports damage, and what the bytes of the database are besides.
fn report(to: &mut Conversation, file: SourceId, salvage: &Salvage) {
    let place = |offset, len| Place {
        source: file,
        offset,
        len,
    };
    to.sources[file.index()].len = salvage.len();
    let mut done = 0;
    for found in salvage.damage() {
        let (at, len, kind) = match *found {
            PageDamage::Log(_) => (0, 0, DamageKind::DamagedLog),
            PageDamage::End => (salvage.len(), 0, DamageKind::DamagedPage),
            PageDamage::Page(at) => {
                let len = salvage.page_len().min(salvage.len() - at);
                (at, len, DamageKind::DamagedPage)
            }
        };
        to.report(place(at, len), kind);
        if len > 0 {
            if at > done {
                let holds = Holds::Raw("pages".into());
                to.parts.push(Part {
                    place: place(done, at - done),
                    holds,
                });
            }
            let holds = Holds::Damaged;
            to.parts.push(Part {
                place: place(at, len),
                holds,
            });
            done = at + len;
        }
    }
    if salvage.len() > done {
        let holds = Holds::Raw("pages".into());
        to.parts.push(Part {
            place: place(done, salvage.len() - done),
            holds,
        });
    }
}

impl Rows for Salvaged {
    type Error = Error;

    fn is_damaged(&self) -> bool {
        true
    }

    fn session(&mut self) -> Result<Option<(Place, Option<Info>)>, Error> {
        Ok(self.session.map(|place| (place, None)))
    }

    fn messages(&mut self) -> Result<Vec<Place>, Error> {
        Ok(self.messages.places())
    }

    fn message(&mut self, place: Place) -> Result<Option<Row>, Error> {
        Ok(self.messages.take(place))
    }

    fn parts(&mut self, message: &str, take: &mut dyn FnMut(Row)) -> Result<(), Error> {
        let parts = self.parts.remove(message).unwrap_or_default();
        parts.into_iter().for_each(take);
        Ok(())
    }

    fn lost_parts(&mut self, _: &[u64]) -> Result<Vec<Row>, Error> {
        let mut lost: Vec<Row> = self.parts.drain().flat_map(|(_, parts)| parts).collect();
        lost.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(lost)
    }

    fn events(&mut self, take: &mut dyn FnMut(Row)) -> Result<(), Error> {
        std::mem::take(&mut self.events).into_iter().for_each(take);
        Ok(())
    }

    fn others(&mut self, to: &mut Conversation) -> Result<(), Error> {
        // The highest number of a row that is known stands for that of the table.
        for part in &to.parts {
            let source = &mut to.sources[part.place.source.index()];
            if source.table.is_some() {
                source.len = source.len.max(part.place.range().end);
            }
        }
        Ok(())
    }
}
