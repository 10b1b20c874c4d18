//! Answers of each path.

use super::access::{Access, User, parameter};
use super::events::{Answer, Content, Events};
use crate::registry::Viewer;
use cutline_openmetrics::TextFormat;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use std::sync::Arc;

const PAGE: &str = include_str!("page/index.html");
const SCRIPT: &str = include_str!("page/page.js");
const STYLE: &str = include_str!("page/page.css");

const HTML: &str = "text/html; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// Headers of every answer: nothing of another site is loaded, and no other site may show the page in a frame.
const SAFETY: [(&str, &str); 4] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// Answers a request of this user.
pub fn answer(
    request: &Request<Incoming>,
    user: User,
    access: &Access,
    events: &Arc<Events>,
) -> Response<Content> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "Only GET and HEAD are answered.\n");
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return answer;
    }
    let query = request.uri().query().unwrap_or_default();
    match access.viewer(user, request.headers(), query) {
        Ok(viewer) => of_path(request, viewer, events),
        Err(error) => text(StatusCode::FORBIDDEN, &format!("{}\n", error.in_words())),
    }
}

fn of_path(request: &Request<Incoming>, viewer: Viewer, events: &Arc<Events>) -> Response<Content> {
    let query = request.uri().query().unwrap_or_default();
    match request.uri().path() {
        "/" => whole(StatusCode::OK, HTML, PAGE),
        "/page.js" => whole(StatusCode::OK, "text/javascript; charset=utf-8", SCRIPT),
        "/page.css" => whole(StatusCode::OK, "text/css; charset=utf-8", STYLE),
        "/metrics" => {
            let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
            let format = TextFormat::accepted(accept.unwrap_or_default());
            let text = events.present(viewer, Answer::Metrics(format));
            whole(StatusCode::OK, format.content_type(), text)
        }
        "/api/host" => whole(StatusCode::OK, JSON, events.present(viewer, Answer::Page)),
        "/api/explain" => whole(StatusCode::OK, JSON, events.present(viewer, Answer::Explanation)),
        "/api/history" => {
            whole(StatusCode::OK, JSON, json(&events.host().history().links(viewer, since(query))))
        }
        "/api/history/socket" => {
            let number = |name| parameter(query, name).and_then(|value| value.parse::<u64>().ok());
            let key = number("pid").and_then(|pid| u32::try_from(pid).ok()).zip(number("socket"));
            let Some(key) = key else {
                return text(StatusCode::BAD_REQUEST, "The query has `pid` and `socket`, both numbers.\n");
            };
            match events.host().history().socket(viewer, key, since(query)) {
                Some(series) => whole(StatusCode::OK, JSON, json(&series)),
                None => text(StatusCode::NOT_FOUND, "There is no such socket, or it is another user's.\n"),
            }
        }
        "/api/events" if *request.method() == Method::GET => {
            finished(StatusCode::OK, "text/event-stream", events.stream(viewer))
        }
        _ => text(StatusCode::NOT_FOUND, "The page is at /, the metrics are at /metrics.\n"),
    }
}

/// Returns the time since 1970 after which points are requested, s: all unless the query has `since`.
fn since(query: &str) -> f64 {
    parameter(query, "since").and_then(|value| value.parse().ok()).unwrap_or_default()
}

fn json(document: &impl serde::Serialize) -> String {
    serde_json::to_string(document).expect("the documents have text keys only")
}

fn text(status: StatusCode, text: &str) -> Response<Content> {
    whole(status, PLAIN, text.to_owned())
}

fn whole(status: StatusCode, kind: &'static str, content: impl Into<Bytes>) -> Response<Content> {
    finished(status, kind, Content::Whole(Some(content.into())))
}

fn finished(status: StatusCode, kind: &'static str, content: Content) -> Response<Content> {
    let mut answer = Response::new(content);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in SAFETY {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    answer
}
