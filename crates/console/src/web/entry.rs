//! Logins and logouts.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Extension, Form,
    extract::{ConnectInfo, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
};
use serde::Deserialize;

use super::{
    access::{Refused, Visitor, cookie, same},
    reply::{Here, plain},
    shield::address,
    site::Site,
    view::{Frame, Login, with},
};

#[derive(Deserialize)]
pub struct Credentials {
    name: String,
    password: String,
}

pub async fn log_in(
    State(site): Here,
    from: ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    Form(said): Form<Credentials>,
) -> Response {
    let (of, from) = (Arc::clone(&site), address(&from));
    // Checks the password as blocking work, because a hash deliberately takes tens of milliseconds
    // of processor time.
    let outcome = tokio::task::spawn_blocking(move || of.guard.log_in(from, &said.name, &said.password)).await;
    let (status, wrong) = match outcome.unwrap_or(Err(Refused::Wrong)) {
        Ok(session) => return with_cookie(&site, &headers, &session, 43_200),
        Err(Refused::Wrong) => (StatusCode::UNAUTHORIZED, "the name or the password is wrong"),
        Err(Refused::TooOften) => (StatusCode::TOO_MANY_REQUESTS, "too many wrong passwords: wait five minutes"),
    };
    with(status, &Login { frame: Frame::anonymous(&site), wrong: Some(wrong) })
}

#[derive(Deserialize)]
pub struct Csrf {
    csrf: String,
}

pub async fn log_out(
    State(site): Here,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    Form(form): Form<Csrf>,
) -> Response {
    if !same(&form.csrf, &visitor.csrf) {
        return plain(StatusCode::FORBIDDEN, "this form does not belong to your session\n");
    }
    site.guard.log_out(&headers);
    with_cookie(&site, &headers, "", 0)
}

/// Redirects to the start page, with a cookie that is valid for `lasts` seconds.
fn with_cookie(site: &Site, headers: &HeaderMap, session: &str, lasts: u32) -> Response {
    let secure = if site.is_secure { "; Secure" } else { "" };
    let (base, name) = (&site.base, cookie(headers));
    let cookie = format!("{name}={session}; Path={base}/; HttpOnly; SameSite=Strict; Max-Age={lasts}{secure}");
    let mut response = Redirect::to(&site.path("/")).into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}
