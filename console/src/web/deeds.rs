//! What is sent to the console: questions before actions, actions, logins.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Extension, Form,
    extract::{ConnectInfo, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
};
use serde::Deserialize;

use super::{
    access::{COOKIE, Refused, Visitor, same},
    act::{self, Action},
    pages::{broken, known, told},
    server::Site,
    shield::{address, plain},
    view::{Ask, Frame, Login, Told, page, with},
    words,
};

type Here = State<Arc<Site>>;

/// Says what would be done to how many, and asks.
pub async fn ask(State(site): Here, Extension(visitor): Extension<Visitor>, Form(form): Form<act::Form>) -> Response {
    let action = match checked(&site, &visitor, &form).await {
        Ok(action) => action,
        Err(refused) => return refused,
    };
    let count = match action.count(&site.db).await {
        Ok(count) => count.map(words::thousands),
        Err(error) => return broken(&site, &visitor, &error).await,
    };
    let (what, back) = (action.in_words(), back(&action));
    page(&Ask { frame: Frame::of(&site, &visitor).await, form, what, count, back })
}

/// Does it, and says what was done.
pub async fn act(State(site): Here, Extension(visitor): Extension<Visitor>, Form(form): Form<act::Form>) -> Response {
    let action = match checked(&site, &visitor, &form).await {
        Ok(action) => action,
        Err(refused) => return refused,
    };
    match action.run(&site.db, &visitor.name).await {
        Ok(count) => {
            let head = match count {
                0 => "Nothing was done: there was nothing left to do it to".to_owned(),
                count => format!("Done: {} {}", action.name(), words::thousands(count)),
            };
            let (text, back) = (action.in_words(), back(&action));
            page(&Told { frame: Frame::of(&site, &visitor).await, head, text, back })
        }
        Err(error) => broken(&site, &visitor, &error).await,
    }
}

/// Whether the form is one of the console's own, from somebody who may, about a queue that is there.
async fn checked(site: &Site, visitor: &Visitor, form: &act::Form) -> Result<Action, Response> {
    if !same(&form.csrf, &visitor.csrf) {
        return Err(plain(
            StatusCode::FORBIDDEN,
            "this form is not of your session; load its page again; nothing was done\n",
        ));
    }
    if let Err(why) = site.may_act(visitor).await {
        return Err(told(site, visitor, StatusCode::FORBIDDEN, "You may not do that", why).await);
    }
    let action = match act::read(form) {
        Ok(action) => action,
        Err(why) => return Err(told(site, visitor, StatusCode::BAD_REQUEST, "That makes no sense", &why).await),
    };
    known(site, visitor, &action.queue).await?;
    Ok(action)
}

fn back(action: &Action) -> String {
    use act::Deed;
    let queue = &action.queue;
    match &action.deed {
        Deed::Replay(_) | Deed::ReplaySlowly { .. } | Deed::Discard(_) | Deed::Edit { .. } => {
            format!("/queues/{queue}/dead")
        }
        Deed::Cancel { .. } => format!("/queues/{queue}/messages"),
        Deed::Reschedule { id, .. } => format!("/queues/{queue}/messages/{id}"),
        Deed::Schedule { .. } => "/schedules".to_owned(),
        _ => format!("/queues/{queue}"),
    }
}

#[derive(Deserialize)]
pub struct Credentials {
    name: String,
    password: String,
}

pub async fn log_in(State(site): Here, from: ConnectInfo<SocketAddr>, Form(said): Form<Credentials>) -> Response {
    let (of, from) = (Arc::clone(&site), address(&from));
    // A hash takes tens of milliseconds of a processor, on purpose.
    let outcome = tokio::task::spawn_blocking(move || of.guard.log_in(from, &said.name, &said.password)).await;
    let (status, wrong) = match outcome.unwrap_or(Err(Refused::Wrong)) {
        Ok(session) => {
            return with_cookie(
                &site,
                &format!("{COOKIE}={session}; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200"),
            );
        }
        Err(Refused::Wrong) => (StatusCode::UNAUTHORIZED, "the name or the password is wrong"),
        Err(Refused::TooOften) => (StatusCode::TOO_MANY_REQUESTS, "too many wrong passwords: wait five minutes"),
    };
    with(status, &Login { frame: Frame::nobody(&site), wrong: Some(wrong) })
}

/// What a form of no other fields brings along.
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
        return plain(StatusCode::FORBIDDEN, "this form is not of your session\n");
    }
    site.guard.log_out(&headers);
    with_cookie(&site, &format!("{COOKIE}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"))
}

fn with_cookie(site: &Site, cookie: &str) -> Response {
    let cookie = if site.is_secure { format!("{cookie}; Secure") } else { cookie.to_owned() };
    let mut response = Redirect::to("/").into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}
