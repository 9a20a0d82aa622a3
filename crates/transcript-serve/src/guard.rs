//! The requests that are answered: those of pages of this server, opened with its token.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::assets;
use crate::shared::Shared;

/// Refuses requests that no page of this server makes, and forbids the browser to keep an answer.
pub(crate) async fn guard(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match refusal(&shared, &request) {
        Some(status) => (status, status.canonical_reason().unwrap_or_default()).into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    let mut set = |name, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    set(header::CACHE_CONTROL, "no-store");
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::REFERRER_POLICY, "no-referrer");
    set(header::X_FRAME_OPTIONS, "SAMEORIGIN");
    set(header::CONTENT_SECURITY_POLICY, &assets::policy());
    set(
        header::HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    );
    set(
        header::HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    );
    response
}

/// Returns the reason why a request is refused.
fn refusal(shared: &Shared, request: &Request) -> Option<StatusCode> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Some(StatusCode::METHOD_NOT_ALLOWED);
    }
    // No browser names the server in the path, and no proxy is meant to.
    if request.uri().scheme().is_some() || request.uri().authority().is_some() {
        return Some(StatusCode::MISDIRECTED_REQUEST);
    }
    let headers = request.headers();
    // Of two, a program between may have looked at the other one.
    let is_twice = |name: &str| headers.get_all(name).iter().nth(1).is_some();
    if ["host", "origin", "sec-fetch-site"]
        .into_iter()
        .any(is_twice)
    {
        return Some(StatusCode::BAD_REQUEST);
    }
    // Another name may lead to this address, and would make another site's page one of this origin.
    let port = shared.address.port();
    let hosts = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{port}"));
    let is_ours = |host: &str| hosts.iter().any(|ours| ours == host);
    if !text(headers, &header::HOST).is_some_and(is_ours) {
        return Some(StatusCode::MISDIRECTED_REQUEST);
    }
    if headers.contains_key(header::ORIGIN) {
        let origin =
            text(headers, &header::ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
        if !origin.is_some_and(is_ours) {
            return Some(StatusCode::FORBIDDEN);
        }
    }
    let site = headers.get("sec-fetch-site");
    if site.is_some_and(|site| site != "none" && site != "same-origin") {
        return Some(StatusCode::FORBIDDEN);
    }
    let token = request.uri().path().split('/').nth(1).unwrap_or_default();
    // Without the token, nothing is there.
    (!is_same(token, &shared.token)).then_some(StatusCode::NOT_FOUND)
}

fn text<'h>(headers: &'h HeaderMap, name: &header::HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Compares in a time that does not depend on where texts differ.
fn is_same(one: &str, other: &str) -> bool {
    let pairs = one.bytes().zip(other.bytes());
    one.len() == other.len()
        && pairs.fold(0, |different, (one, other)| different | (one ^ other)) == 0
}
