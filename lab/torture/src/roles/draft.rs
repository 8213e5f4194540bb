//! Makes the draft of the message with a given tag, with the options that its queue needs.

use std::time::Duration;

use trunkline::Draft;

use crate::{plan, tag};

pub fn draft(name: &str, tag: u64, delay_ms: u64) -> Draft<String> {
    let draft = Draft::new(tag::payload(tag)).after(Duration::from_millis(delay_ms));
    let draft = match name {
        plan::LEAST | plan::RANKED => draft.priority(tag::priority(tag)),
        plan::KEYED => draft.key(tag::key(tag)),
        _ => draft,
    };
    match tag::beside(tag) {
        Some(text) => draft.with(tag::BESIDE, text),
        None => draft,
    }
}
