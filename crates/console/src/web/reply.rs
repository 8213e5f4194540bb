//! Replies that several pages share, such as the reply to an error.

use std::sync::Arc;

use axum::{
    Extension,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use trunkline::{Description, Error};

use super::{
    access::Visitor,
    site::Site,
    view::{Frame, Told, with},
    words,
};
use crate::reason::reason;

pub type Visit = Extension<Visitor>;
pub type Here = State<Arc<Site>>;
/// A page, or the page that explains why it cannot be shown.
pub type Page = Result<Response, Response>;

pub fn plain(status: StatusCode, text: &'static str) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}

pub async fn nothing_of(site: &Site, visitor: &Visitor, why: &str) -> Response {
    told(site, visitor, StatusCode::NOT_FOUND, "Not found", why).await
}

pub async fn told(site: &Site, visitor: &Visitor, status: StatusCode, head: &str, text: &str) -> Response {
    let (head, text) = (head.to_owned(), words::shown(text));
    with(status, &Told { frame: Frame::of(site, visitor).await, head, text, back: site.path("/") })
}

/// Returns the description of the queue. The caller may then use the queue's name in statements,
/// because the queue exists.
pub async fn known(site: &Site, visitor: &Visitor, name: &str) -> Result<Description, Response> {
    match site.db.describe_queue(name).await {
        Ok(is) => Ok(is),
        Err(error) if error.is_no_queue() => {
            Err(nothing_of(site, visitor, &format!("There is no queue {name:?}.")).await)
        }
        Err(error) => Err(broken(site, visitor, &error).await),
    }
}

pub async fn failing<V>(site: &Site, visitor: &Visitor, outcome: trunkline::Result<V>) -> Result<V, Response> {
    match outcome {
        Ok(value) => Ok(value),
        Err(error) => Err(broken(site, visitor, &error).await),
    }
}

/// Returns the page that shows the server's error to an admitted visitor.
pub async fn broken(site: &Site, visitor: &Visitor, error: &Error) -> Response {
    told(site, visitor, status_of(error), "The request failed", &reason(error)).await
}

pub fn status_of(error: &Error) -> StatusCode {
    match error.sqlstate().map_or("", |state| state.code()) {
        "42501" => StatusCode::FORBIDDEN,
        "TL001" => StatusCode::BAD_REQUEST,
        code if code.starts_with("22") => StatusCode::BAD_REQUEST,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}
