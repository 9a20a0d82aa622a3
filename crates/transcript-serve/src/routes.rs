//! The addresses of the server.

use std::convert::Infallible;
use std::path::PathBuf;
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
use transcript_reader::SessionRow;

use crate::live::Update;
use crate::shared::Shared;
use crate::shown::{SessionAddress, find};
use crate::{guard, views};

type RouteResult = Result<Response, StatusCode>;

pub(crate) fn router(shared: Arc<Shared>) -> Router {
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

/// Runs what reads files.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StatusCode> {
    let done = spawn_blocking(work).await;
    done.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

#[derive(Debug, Default, Deserialize)]
struct ListQuery {
    #[serde(default)]
    q: String,
    #[serde(default)]
    all: Option<String>,
}

/// The list of all sessions, or the hits of a search in them.
async fn list(State(shared): State<Arc<Shared>>, Query(asked): Query<ListQuery>) -> RouteResult {
    let page = blocking(move || match asked.q.trim() {
        "" => views::list(&shared.options, asked.all.is_some()),
        query => views::search(&shared.options, query),
    });
    Ok(Html(page.await?).into_response())
}

async fn usage(State(shared): State<Arc<Shared>>) -> RouteResult {
    let page = blocking(move || views::usage(&shared.options));
    Ok(Html(page.await?).into_response())
}

/// A session, or one of its subagents.
async fn session(
    State(shared): State<Arc<Shared>>,
    Path(named): Path<SessionAddress>,
) -> RouteResult {
    let place = Arc::clone(&shared);
    let (file, path, name, agents) = blocking(move || {
        let (file, path) = find(&place.options.context, &named)?;
        let agents = place.options.context.agents(&file.path);
        Some((file, path, named, agents))
    })
    .await?
    .ok_or(StatusCode::NOT_FOUND)?;
    // The first bytes do not wait until a large file is read.
    let (sender, receiver) = mpsc::channel::<Result<String, Infallible>>(4);
    tokio::spawn(async move {
        let row = SessionRow::of_file(shared.options.context.read_disk(), &file);
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
    let mut response = Body::from_stream(ReceiverStream(receiver)).into_response();
    let kind = header::HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

#[derive(Debug, Deserialize)]
struct PartQuery {
    key: String,
}

/// A part of a session.
async fn part(
    State(shared): State<Arc<Shared>>,
    Path(named): Path<SessionAddress>,
    Query(PartQuery { key }): Query<PartQuery>,
) -> RouteResult {
    let path = session_path(&shared, named).await?;
    let html = shared.session(&path).part(key).await;
    Ok(Html(html.ok_or(StatusCode::GONE)?).into_response())
}

#[derive(Debug, Deserialize)]
struct EventsQuery {
    known: Option<String>,
}

/// The stream of changes of a session. A page that connects again names its state by the id of the last event.
async fn events(
    State(shared): State<Arc<Shared>>,
    Path(named): Path<SessionAddress>,
    Query(EventsQuery { known }): Query<EventsQuery>,
    headers: HeaderMap,
) -> RouteResult {
    let path = session_path(&shared, named).await?;
    let last = headers.get("last-event-id");
    let last = last.and_then(|id| Some(id.to_str().ok()?.to_owned()));
    let updates = shared.session(&path).watch(last.or(known));
    let events = Events(updates);
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response())
}

/// A session and its subagents, side by side.
async fn beside(
    State(shared): State<Arc<Shared>>,
    Path(named): Path<SessionAddress>,
) -> RouteResult {
    let page = blocking(move || {
        let (file, _) = find(&shared.options.context, &named)?;
        let agents = shared.options.context.agents(&file.path);
        Some(views::beside(&agents))
    });
    Ok(Html(page.await?.ok_or(StatusCode::NOT_FOUND)?).into_response())
}

async fn session_path(shared: &Arc<Shared>, named: SessionAddress) -> Result<PathBuf, StatusCode> {
    let shared = Arc::clone(shared);
    let found = blocking(move || find(&shared.options.context, &named)).await?;
    Ok(found.ok_or(StatusCode::NOT_FOUND)?.1)
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

/// The receiver of a channel, as a stream.
struct ReceiverStream<T>(mpsc::Receiver<T>);

impl<T> Stream for ReceiverStream<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.poll_recv(context)
    }
}
