//! The page of dead letters: groups by error, a search, and actions.

use askama::Template;
use axum::{
    Extension,
    extract::{Path, Query, State},
};
use serde::Deserialize;

use super::{
    reply::{Here, Page, Visit, failing, known},
    sieve::Sieve,
    statement::{self, Letter, PAGE},
    view::{Frame, Item, page},
    words,
};
use crate::reason::is_late;

/// Dead letters with the same error.
struct Same {
    /// The error, safe to display on a page.
    shown: String,
    count: String,
    first: String,
    last: String,
    /// The form fields that select this group among the dead letters that the search found.
    fields: Vec<(&'static str, String)>,
    /// The query string of a link to this group.
    link: String,
}

#[derive(Template)]
#[template(path = "dead.html")]
struct Dead {
    frame: Frame,
    queue: String,
    keyed: bool,
    groups: Vec<Same>,
    /// True if the server could not group the dead letters in time.
    is_late: bool,
    /// True if the server could not list the dead letters in time.
    is_unlisted: bool,
    which: Sieve,
    words: String,
    items: Vec<Item>,
    next: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct From {
    #[serde(default)]
    after: i64,
}

pub async fn dead(
    State(site): Here,
    Extension(visitor): Visit,
    Path(name): Path<String>,
    Query(from): Query<From>,
    Query(which): Query<Sieve>,
) -> Page {
    let is = known(&site, &visitor, &name).await?;
    let which = which.tidied();
    let all_groups = which.of_all_groups();
    let groups = match statement::groups(&site.db, &name, &all_groups).await {
        Err(error) if is_late(&error) => None,
        groups => Some(failing(&site, &visitor, groups).await?),
    };
    let letters = match statement::letters(&site.db, &is, &which, from.after).await {
        Err(error) if is_late(&error) => None,
        letters => Some(failing(&site, &visitor, letters).await?),
    };
    let (is_late, is_unlisted) = (groups.is_none(), letters.is_none());
    let letters = letters.unwrap_or_default();
    let next = letters.last().filter(|_| letters.len() == PAGE);
    let next = next.map(|last| format!("?after={}&{}", last.0, which.query()).trim_end_matches('&').to_owned());
    let groups = groups.into_iter().flatten().map(|(error, count, first, last)| {
        // Gives the link to the group of empty errors a text.
        let shown = if error.trim().is_empty() { "(no text)".to_owned() } else { words::shown(&error) };
        let of = Sieve { error: Some(error), ..all_groups.clone() };
        let (first, last) = (words::ago(first), words::ago(last));
        Same { shown, count: words::thousands(count), first, last, fields: of.fields(), link: of.query() }
    });
    let (groups, items) = (groups.collect(), letters.into_iter().map(letter).collect());
    let frame = Frame::of_queue(&site, &visitor, &name).await;
    let words = words::shown(&which.in_words());
    let (queue, keyed) = (name, is.partitions > 0);
    Ok(page(&Dead { frame, queue, keyed, groups, is_late, is_unlisted, which, words, items, next }))
}

fn letter((id, dead_at, attempt, error, payload, size, key): Letter) -> Item {
    let (state, when) = ("dead".to_owned(), format!("died {}", words::ago(dead_at)));
    let key = words::shown(&key.unwrap_or_default());
    Item {
        id,
        state,
        when,
        attempt,
        error: words::shown(&error),
        payload: words::shown(&payload),
        size: words::bytes(size),
        key,
    }
}
