//! The addresses of the server.

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::{Path as FilePath, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use futures_core::Stream;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use transcript_reader::{SessionFile, SessionFiles, SessionRow, Subagent, subagents_on};
use transcript_storage::{ReadDisk, folder_of};

use super::live::Update;
use super::{ServeOptions, Shared, guard, views};

type Answer = Result<Response, StatusCode>;

pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/{token}/", get(list))
        .route("/{token}/usage", get(usage))
        .route("/{token}/s/{project}/{id}/", get(session))
        .route("/{token}/s/{project}/{id}/part", get(part))
        .route("/{token}/s/{project}/{id}/events", get(events))
        .route("/{token}/s/{project}/{id}/beside", get(beside))
        .route("/{token}/s/{project}/{id}/a/{agent}/", get(session))
        .route("/{token}/s/{project}/{id}/a/{agent}/part", get(part))
        .route("/{token}/s/{project}/{id}/a/{agent}/events", get(events))
        .fallback(|| async { StatusCode::NOT_FOUND })
        .layer(axum::middleware::from_fn_with_state(
            Arc::clone(&shared),
            guard::guard,
        ))
        .with_state(shared)
}

/// The names in the address of a session.
#[derive(Debug, Deserialize)]
struct Named {
    project: String,
    id: String,
    agent: Option<String>,
}

/// Runs what reads files.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StatusCode> {
    let done = spawn_blocking(work).await;
    done.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

#[derive(Debug, Default, Deserialize)]
struct Asked {
    #[serde(default)]
    q: String,
    #[serde(default)]
    all: Option<String>,
}

/// All sessions, or what is found in them.
async fn list(State(shared): State<Arc<Shared>>, Query(asked): Query<Asked>) -> Answer {
    let page = blocking(move || match asked.q.trim() {
        "" => views::list(&shared.options, asked.all.is_some()),
        query => views::search(&shared.options, query),
    });
    Ok(Html(page.await?).into_response())
}

async fn usage(State(shared): State<Arc<Shared>>) -> Answer {
    let page = blocking(move || views::usage(&shared.options));
    Ok(Html(page.await?).into_response())
}

/// A session, or one of its subagents.
async fn session(State(shared): State<Arc<Shared>>, Path(named): Path<Named>) -> Answer {
    let place = Arc::clone(&shared);
    let (file, path, name, agents) = blocking(move || {
        let (file, path) = find(&place, &named)?;
        let agents = agents_below(&place.options, &file);
        Some((file, path, named, agents))
    })
    .await?
    .ok_or(StatusCode::NOT_FOUND)?;
    // The first bytes do not wait until a large file is read.
    let (sender, receiver) = mpsc::channel::<Result<String, Infallible>>(4);
    tokio::spawn(async move {
        let row = SessionRow::of_file(&shared.options.disk, &file);
        let view = views::SessionView {
            row: &row,
            agent: name.agent.as_deref(),
            agents: &agents,
            options: &shared.options,
        };
        if sender.send(Ok(view.start())).await.is_err() {
            return;
        }
        let parts = shared.session(&path).parts().await;
        // The page may be closed by now.
        let _ = sender.send(Ok(view.rest(parts.as_ref()))).await;
    });
    let mut response = Body::from_stream(Receive(receiver)).into_response();
    let kind = header::HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

#[derive(Debug, Deserialize)]
struct Key {
    key: String,
}

/// A part of a session.
async fn part(
    State(shared): State<Arc<Shared>>,
    Path(named): Path<Named>,
    Query(Key { key }): Query<Key>,
) -> Answer {
    let path = place_of(&shared, named).await?;
    let html = shared.session(&path).part(key).await;
    Ok(Html(html.ok_or(StatusCode::GONE)?).into_response())
}

#[derive(Debug, Deserialize)]
struct Known {
    known: Option<String>,
}

/// What changes in a session. A page that connects again says what it has by the id of the last event.
async fn events(
    State(shared): State<Arc<Shared>>,
    Path(named): Path<Named>,
    Query(Known { known }): Query<Known>,
    headers: HeaderMap,
) -> Answer {
    let path = place_of(&shared, named).await?;
    let last = headers.get("last-event-id");
    let last = last.and_then(|id| Some(id.to_str().ok()?.to_owned()));
    let updates = shared.session(&path).watch(last.or(known));
    let events = Events(updates);
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response())
}

/// A session and its subagents, side by side.
async fn beside(State(shared): State<Arc<Shared>>, Path(named): Path<Named>) -> Answer {
    let page = blocking(move || {
        let (file, _) = find(&shared, &named)?;
        let agents = agents_below(&shared.options, &file);
        Some(views::beside(&agents))
    });
    Ok(Html(page.await?.ok_or(StatusCode::NOT_FOUND)?).into_response())
}

async fn place_of(shared: &Arc<Shared>, named: Named) -> Result<PathBuf, StatusCode> {
    let shared = Arc::clone(shared);
    let found = blocking(move || find(&shared, &named)).await?;
    Ok(found.ok_or(StatusCode::NOT_FOUND)?.1)
}

/// Finds the file that an address names, among those that are listed: no path is made of what was asked for.
fn find(shared: &Shared, named: &Named) -> Option<(SessionFile, PathBuf)> {
    let options = &shared.options;
    let mut files = sessions_below(options).ok()?;
    let is_asked = |file: &SessionFile| file.project == named.project && file.id == named.id;
    let at = files.sessions.iter().position(is_asked)?;
    let file = files.sessions.swap_remove(at);
    let path = match &named.agent {
        None => file.path.clone(),
        Some(agent) => {
            let agents = agents_below(options, &file);
            let found = agents.into_iter().find(|found| found.id == *agent);
            found?.path
        }
    };
    Some((file, path))
}

/// Finds the sessions that the server may show: those in the folder of projects. A link to a project, of a session, or to the
/// folder of a session, that leads out of it is not followed, whatever asks: a list, a search, usage or an address.
pub(super) fn sessions_below(
    options: &ServeOptions,
) -> Result<SessionFiles, transcript_reader::Error> {
    let mut files = SessionFiles::in_root_on(&options.disk, &options.root)?;
    let below = Below::of(options);
    let mut known = HashMap::<PathBuf, bool>::new();
    let mut is_shown = |file: &SessionFile| {
        let folder = folder_of(&file.path);
        *known
            .entry(folder.to_owned())
            .or_insert_with(|| below.has(folder))
            && (!file.is_link || below.has(&file.path))
    };
    files.sessions.retain(&mut is_shown);
    files.orphans.retain(&mut is_shown);
    files.leftovers.retain(&mut is_shown);
    files.agents.retain(|agent| below.has(agent));
    let has_folder = |file: &SessionFile| below.has(&file.path.with_extension(""));
    for session in &mut files.sessions {
        session.has_folder = session.has_folder && has_folder(session);
    }
    files.orphans.retain(has_folder);
    files.leftovers.retain(has_folder);
    Ok(files)
}

/// Finds the subagents of a session that the server may show.
fn agents_below(options: &ServeOptions, session: &SessionFile) -> Vec<Subagent> {
    let below = Below::of(options);
    let agents = subagents_on(&options.disk, &session.path);
    let mut agents = agents.unwrap_or_default();
    agents.retain(|agent| below.has(&agent.path));
    agents
}

/// What is in the folder of projects, wherever links lead.
struct Below<'o> {
    disk: &'o dyn ReadDisk,
    root: Option<PathBuf>,
}

impl<'o> Below<'o> {
    fn of(options: &'o ServeOptions) -> Self {
        let disk = &*options.disk;
        let root = disk.real_path(&options.root).ok();
        Self { disk, root }
    }

    fn has(&self, path: &FilePath) -> bool {
        let real = self.disk.real_path(path).ok();
        real.zip(self.root.as_ref())
            .is_some_and(|(path, root)| path.starts_with(root))
    }
}

/// The events of a page.
struct Events(mpsc::Receiver<Update>);

impl Stream for Events {
    type Item = Result<Event, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|update| {
            let update = update?;
            let data = serde_json::to_string(&update).map_err(axum::Error::new);
            let event = Event::default().event("parts").id(update.known.as_str());
            Some(data.map(|data| event.data(data)))
        })
    }
}

/// What is received, as a stream.
struct Receive<T>(mpsc::Receiver<T>);

impl<T> Stream for Receive<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.poll_recv(context)
    }
}
