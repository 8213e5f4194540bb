//! The pages, one function each.

use std::{sync::Arc, time::SystemTime};

use axum::{
    Extension,
    extract::{Path, Query, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::{
    access::Visitor,
    reply::{Here, Page, Visit, failing, known, nothing_of, told},
    row::Row,
    statement::{self, Find, Line, Message, PAGE},
    verdict::Verdict,
    view::{
        Audit, DoctorPage, Frame, Item, Login, MessagePage, Messages, Overview, Plan, Relay, Relays, Schedules, page,
    },
    words,
};

pub async fn overview(State(site): Here, Extension(visitor): Visit) -> Page {
    let picture = Arc::clone(&site.pulse.picture.borrow());
    let rows: Vec<Row> = picture.queues.values().map(Row::of).collect();
    let frame = Frame::of(&site, &visitor).await;
    let programs = failing(&site, &visitor, statement::programs(&site.db).await).await?;
    Ok(page(&Overview { verdict: Verdict::of(&picture, frame.problem.as_deref()), rows, programs, frame }))
}

pub async fn messages(
    State(site): Here,
    Extension(visitor): Visit,
    Path(name): Path<String>,
    Query(find): Query<Find>,
) -> Page {
    let is = known(&site, &visitor, &name).await?;
    if let Some(id) = find.id.as_deref().map(str::trim).filter(|id| !id.is_empty()) {
        let place = site.path(&format!("/queues/{name}/messages/{}", utf8_percent_encode(id, NON_ALPHANUMERIC)));
        return Ok(axum::response::Redirect::to(&place).into_response());
    }
    let (lines, next) = failing(&site, &visitor, statement::messages(&site.db, &is, &find).await).await?;
    let field = |text: &Option<String>| text.clone().unwrap_or_default();
    let (key, metadata, state) = (field(&find.key), field(&find.metadata), field(&find.state));
    let (from, until) = (field(&find.from), field(&find.until));
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let next = next.map(|after| {
        let times = format!("&from={}&until={}", encoded(&from), encoded(&until));
        format!("?after={after}&key={}&metadata={}&state={}{times}", encoded(&key), encoded(&metadata), encoded(&state))
    });
    let items = lines.into_iter().map(item).collect();
    let frame = Frame::of(&site, &visitor).await;
    Ok(page(&Messages { frame, queue: name, items, next, key, metadata, state, from, until }))
}

fn item((id, state, enqueued_at, due_at, attempt, error, payload, size, key): Line) -> Item {
    let when = match state.as_str() {
        "due" => format!("due {}, enqueued {}", words::ago(due_at), words::ago(enqueued_at)),
        "leased" => format!("lease ends {}", words::ago(due_at)),
        _ => format!("due {}", words::ago(due_at)),
    };
    let (error, key) = (error.unwrap_or_default(), key.unwrap_or_default());
    Item {
        id,
        state,
        when,
        attempt,
        error: words::shown(&error),
        payload: words::shown(&payload),
        size: words::bytes(size),
        key: words::shown(&key),
    }
}

pub async fn message(State(site): Here, Extension(visitor): Visit, Path((name, id)): Path<(String, String)>) -> Page {
    known(&site, &visitor, &name).await?;
    let id = match words::number("the id", &id) {
        Ok(id) => id,
        Err(why) => return Err(told(&site, &visitor, StatusCode::BAD_REQUEST, "Message not found", &why).await),
    };
    let Some(message) = failing(&site, &visitor, statement::message(&site.db, &name, id).await).await? else {
        let why = format!(
            "Queue {name} has no message {id} any more: it was acknowledged, cancelled or taken, or it never existed."
        );
        return Err(told(&site, &visitor, StatusCode::NOT_FOUND, "Message not found", &why).await);
    };
    let (state, attempt, at, enqueued_at, error, raw, length, metadata, priority, key): Message = message;
    let both = |at: SystemTime| format!("{} ({})", words::time(at), words::ago(at));
    let at_which = match state.as_str() {
        "leased" => "leased until",
        "dead" => "died",
        "archived" => "archived",
        _ => "due",
    };
    let mut facts = vec![("enqueued", both(enqueued_at)), ("deliveries", attempt.to_string()), (at_which, both(at))];
    facts.extend((priority > 0).then(|| ("priority", priority.to_string())));
    facts.extend(key.map(|key| ("key", words::shown(&key))));
    facts.push(("size of the payload", words::bytes(length)));
    let (payload, is_whole) = words::payload(&raw);
    let frame = Frame::of_queue(&site, &visitor, &name).await;
    let (error, metadata) = (words::shown(&error.unwrap_or_default()), words::shown(&metadata.unwrap_or_default()));
    let raw = if is_whole { raw } else { String::new() };
    Ok(page(&MessagePage { frame, queue: name, id, state, facts, error, payload, is_whole, metadata, raw }))
}

pub async fn schedules(State(site): Here, Extension(visitor): Visit) -> Page {
    let all = failing(&site, &visitor, site.db.schedules().await).await?;
    let when = |time: Option<SystemTime>| {
        time.map_or_else(|| "–".to_owned(), |time| format!("{} ({})", words::time(time), words::ago(time)))
    };
    let plans = all.into_iter().map(|of| Plan {
        next: when(of.next),
        last: when(of.last),
        problem: of.problem.unwrap_or_default(),
        expression: format!("{} {}", of.expression, of.zone),
        name: of.name,
        queue: of.queue,
        is_paused: of.is_paused,
    });
    let plans = plans.collect();
    Ok(page(&Schedules { frame: Frame::of(&site, &visitor).await, plans }))
}

pub async fn relays(State(site): Here, Extension(visitor): Visit) -> Page {
    let relays = failing(&site, &visitor, statement::relays(&site.db).await).await?;
    let relays = relays.into_iter().map(relay).collect();
    Ok(page(&Relays { frame: Frame::of(&site, &visitor).await, relays }))
}

fn relay((state, name, queue, way, confirmed, counts, lag, error, failed_at, seen_at): statement::Relay) -> Relay {
    let count = |at: usize| counts.get(at).map_or_else(String::new, |count| words::thousands(*count));
    let problem = match failed_at {
        Some(at) => format!("{}: {}", words::ago(at), words::shown(&error)),
        None => String::new(),
    };
    Relay {
        is_silent: state == "silent",
        name: words::shown(&name),
        queue,
        way: words::shown(&way),
        confirmed: words::thousands(confirmed),
        refused: count(0),
        held: count(1),
        lag: lag.map_or_else(|| "–".to_owned(), words::thousands),
        seen: words::ago(seen_at),
        problem,
    }
}

pub async fn doctor(State(site): Here, Extension(visitor): Visit) -> Page {
    let state = site.checkup.state(&site.db).await;
    let since = |at: SystemTime| format!("{} ({})", words::time(at), words::ago(at));
    let frame = Frame::of(&site, &visitor).await;
    let looks_for = state.since.map(|since| words::age(since.elapsed()));
    let (mut findings, mut at, mut problem) = (Vec::new(), String::new(), String::new());
    if let Some(last) = &state.last {
        at = format!("{}; the checks took {}", words::ago(last.at), words::age(last.took));
        match &last.findings {
            Ok(found) => findings.clone_from(found),
            Err(why) => problem = words::shown(why),
        }
    }
    let findings: Vec<_> = findings
        .into_iter()
        .map(|mut finding| {
            let at = finding.since.map_or_else(String::new, since);
            // Makes these fields safe to display, because they contain text from the database:
            // names, statements and errors.
            for text in [&mut finding.what, &mut finding.why, &mut finding.mend] {
                *text = words::shown(text);
            }
            (finding, at)
        })
        .collect();
    Ok(page(&DoctorPage { frame, findings, looks_for, at, problem }))
}

#[derive(Debug, Deserialize)]
pub struct Before {
    before: Option<i64>,
}

pub async fn audit(State(site): Here, Extension(visitor): Visit, Query(from): Query<Before>) -> Page {
    let entries = statement::entries(&site.db, from.before.unwrap_or(i64::MAX)).await;
    let entries = failing(&site, &visitor, entries).await?;
    let next = entries.last().filter(|_| entries.len() == PAGE).map(|entry| entry.0);
    let entries = entries.into_iter().map(|(_, at, who, role, action, queue, what, count)| {
        [
            words::time(at),
            words::shown(&who),
            role,
            super::phrases::verb(&action).to_owned(),
            queue.unwrap_or_default(),
            words::shown(&what),
            words::thousands(count),
        ]
    });
    let entries = entries.collect();
    Ok(page(&Audit { frame: Frame::of(&site, &visitor).await, entries, next }))
}

pub async fn login(State(site): Here) -> Response {
    page(&Login { frame: Frame::anonymous(&site), wrong: None })
}

/// Shows process supervisors only whether the database answers and the queues can be read.
pub async fn healthz(State(site): Here) -> Response {
    let (status, text) = if site.health.is_well(&site.db).await {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer, or the queues cannot be read\n")
    };
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}

/// Returns the metrics for Prometheus, if the visitor is admitted.
pub async fn metrics(State(site): Here) -> Response {
    let text = site.metrics.exposition(&site.db).await;
    ([(header::CONTENT_TYPE, crate::metrics::CONTENT_TYPE)], text).into_response()
}

pub async fn nothing(State(site): Here, visitor: Option<Extension<Visitor>>) -> Response {
    match visitor {
        Some(Extension(visitor)) => nothing_of(&site, &visitor, "There is no such page.").await,
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
