//! Requests that change something: the confirmation page of an action, and the action itself.

use axum::{
    Extension, Form,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Redirect, Response},
};
use trunkline::{Description, Error};

use super::{
    access::{Visitor, same, token},
    act::{self, Action, Count, Deed},
    form,
    notice::Notice,
    phrases::button,
    reply::{Here, known, plain, status_of, told},
    site::Site,
    statement,
    view::{Again, Ask, Frame, page, with},
    words,
};
use crate::reason::reason;

/// Describes an action and asks for confirmation. Fails if the server would refuse the action.
pub async fn ask(State(site): Here, Extension(visitor): Extension<Visitor>, Form(form): Form<form::Form>) -> Response {
    // A repeated question counts again: its answer affects all dead letters up to that count.
    let form = form::Form { counted: String::new(), ..form };
    let (action, is) = match checked(&site, &visitor, &form).await {
        Ok(checked) => checked,
        Err(refused) => return refused,
    };
    if let Err(error) = action.check(&site.db, &is).await {
        return failed(&site, &visitor, form, Some(&is), &action, &error).await;
    }
    // Counts the dead letters before the question, because the answer does not affect letters that
    // die later.
    let (count, counted) = match action.count(&site.db).await {
        Ok(Count::Of(count, counted)) => (Some(words::thousands(count)), counted),
        Ok(Count::Late(counted)) => (Some("not known, because counting takes too long".to_owned()), counted),
        Ok(Count::Unneeded) => (None, String::new()),
        Err(error) => return failed(&site, &visitor, form, Some(&is), &action, &error).await,
    };
    let (head, what, back) = (action.question(), action.in_words(), site.path(&action.place()));
    let (button, is_destructive) = (button(&form.verb).to_owned(), action.is_destructive());
    let can_change = !form.typed(Some(&is)).is_empty();
    let form = form::Form { token: token(), counted, ..form };
    let frame = Frame::of(&site, &visitor).await;
    page(&Ask { frame, form, head, what, count, back, button, is_destructive, can_change })
}

/// Shows the form of an action again before the visitor confirms it, so that the visitor can change
/// it.
pub async fn change(
    State(site): Here,
    Extension(visitor): Extension<Visitor>,
    Form(form): Form<form::Form>,
) -> Response {
    match checked(&site, &visitor, &form).await {
        Ok((action, is)) => {
            let retry = Retry { form, is: Some(&is), place: &action.place() };
            again(&site, &visitor, retry, StatusCode::OK, action.question(), String::new()).await
        }
        Err(refused) => refused,
    }
}

/// Runs the action and redirects to the next page, which shows the result. A reload of that page
/// does nothing.
pub async fn act(State(site): Here, Extension(visitor): Extension<Visitor>, Form(form): Form<form::Form>) -> Response {
    let (action, is) = match checked(&site, &visitor, &form).await {
        Ok(checked) => checked,
        Err(refused) => return refused,
    };
    if matches!(action.deed, Deed::Purge) && form.confirm.trim() != action.queue {
        let why = format!("Type the name of the queue, {}, to purge it. Nothing was done.", action.queue);
        let retry = Retry { form, is: Some(&is), place: &action.place() };
        return again(&site, &visitor, retry, StatusCode::BAD_REQUEST, action.question(), why).await;
    }
    if !is_token(&form.token) {
        let why = "The form has no token: confirm the action again. Nothing was done.".to_owned();
        let retry = Retry { form, is: Some(&is), place: &action.place() };
        return again(&site, &visitor, retry, StatusCode::BAD_REQUEST, action.question(), why).await;
    }
    let outcome = action.run(&site.db, &is, &visitor.name, &form.token).await;
    site.workings.forget(&is.name); // also if it failed, because its outcome may be unknown
    if matches!(action.deed, Deed::Purge) && outcome.as_ref().err().is_none_or(Error::is_outcome_unknown) {
        site.metrics.forget(&is.name); // a large queue is counted only every few minutes
        site.pulse.renew(&is.name).await;
    }
    let notice = match outcome {
        Ok(done) => Notice {
            text: format!("{}.", action.done(done.count)),
            message: done.id.map(|id| (action.queue.clone(), id)),
        },
        Err(error) if has_acted(&error) => {
            Notice::of("This form was already submitted, so nothing was done again. The audit shows its action.")
        }
        Err(error) => return failed(&site, &visitor, form, Some(&is), &action, &error).await,
    };
    let mut response = Redirect::to(&site.path(&action.place())).into_response();
    if let Some(cookie) = notice.cookie(&site.base, site.is_secure) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

fn is_token(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns true if an audit entry already has the token.
fn has_acted(error: &Error) -> bool {
    error.sqlstate().is_some_and(|state| state.code() == "23505") && error.to_string().contains("audit_token")
}

/// Checks that the form comes from this console, that the visitor may act, and that the queue
/// exists.
async fn checked(site: &Site, visitor: &Visitor, form: &form::Form) -> Result<(Action, Description), Response> {
    if !same(&form.csrf, &visitor.csrf) {
        return Err(plain(
            StatusCode::FORBIDDEN,
            "nothing was done, because the form belongs to another session: reload the page and try again\n",
        ));
    }
    if let Err(why) = site.may_act(visitor).await {
        return Err(told(site, visitor, StatusCode::FORBIDDEN, "You may not do this", why).await);
    }
    let mut action = match act::read(form) {
        Ok(action) => action,
        Err(why) => {
            let is = known(site, visitor, &form.queue).await?;
            let (head, place) = ("The form is not valid".to_owned(), format!("/queues/{}", is.name));
            let retry = Retry { form: form.clone(), is: Some(&is), place: &place };
            return Err(again(site, visitor, retry, StatusCode::BAD_REQUEST, head, why).await);
        }
    };
    if let Deed::Schedule { name, .. } = &action.deed {
        action.queue = match statement::schedule_queue(&site.db, name).await {
            Ok(Some(queue)) => queue,
            Ok(None) => {
                let why = format!("There is no schedule {name:?}.");
                return Err(told(site, visitor, StatusCode::NOT_FOUND, "Not found", &why).await);
            }
            Err(error) => return Err(failed(site, visitor, form.clone(), None, &action, &error).await),
        };
    }
    let is = known(site, visitor, &action.queue).await?;
    Ok((action, is))
}

/// A form that is shown again, its queue, and the page of a visitor who gives up.
struct Retry<'a> {
    form: form::Form,
    is: Option<&'a Description>,
    place: &'a str,
}

async fn failed(
    site: &Site,
    visitor: &Visitor,
    form: form::Form,
    is: Option<&Description>,
    action: &Action,
    error: &Error,
) -> Response {
    let what = match error.is_outcome_unknown() {
        true => "Check the audit before you try again: it lists the action if it was done.",
        false => "Nothing was done.",
    };
    let why = match error.sqlstate().is_some_and(|state| state.code() == "55P03") {
        true => "another session has locked what the action needs; try again once its transaction has ended".to_owned(),
        false => reason(error),
    };
    let why = format!("{}. {what}", why.trim_end_matches('.'));
    let retry = Retry { form, is, place: &action.place() };
    again(site, visitor, retry, status_of(error), "The action failed".to_owned(), why).await
}

/// Shows the form again with the typed values, and the reason why the action failed.
async fn again(
    site: &Site,
    visitor: &Visitor,
    Retry { form, is, place }: Retry<'_>,
    status: StatusCode,
    head: String,
    why: String,
) -> Response {
    let (button, back, typed) = (button(&form.verb).to_owned(), site.path(place), form.typed(is));
    let (frame, why) = (Frame::of(site, visitor).await, words::shown(&why));
    with(status, &Again { frame, form, typed, head, why, back, button })
}
