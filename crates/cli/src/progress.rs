//! Progress on a terminal; nothing anywhere else.

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often a bar is drawn.
pub const TICK: Duration = Duration::from_millis(100);

fn target() -> ProgressDrawTarget {
    if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸─")
}

/// Bars one below the other.
pub fn bars() -> MultiProgress {
    MultiProgress::with_draw_target(target())
}

/// Messages out of a known number.
pub fn messages(name: &'static str, length: u64) -> ProgressBar {
    ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden())
        .with_style(style("{prefix:>9} {bar:40.cyan/dim} {human_pos:>11} of {human_len}  {per_sec}"))
        .with_prefix(name)
}

/// A number of messages that is not known beforehand; the bar's message says how they fare.
pub fn work(queue: &str) -> ProgressBar {
    ProgressBar::with_draw_target(None, target())
        .with_style(style("{spinner} {prefix}: {human_pos} done, {msg}"))
        .with_prefix(queue.to_owned())
}

/// Bytes out of a known number, or just bytes.
pub fn bytes(name: &'static str, length: Option<u64>) -> ProgressBar {
    let template = match length {
        Some(_) => "{prefix:>9} {bar:40.cyan/dim} {bytes:>10} of {total_bytes}  {msg}",
        None => "{prefix:>9} {spinner} {bytes:>10}  {msg}",
    };
    ProgressBar::with_draw_target(length, target()).with_style(style(template)).with_prefix(name)
}

/// The download of a PostgreSQL, where one is needed: what
/// [`trunkline_embedded::Builder::progress`] takes.
pub fn download() -> impl FnMut(u64, u64) + 'static {
    let mut bar = None;
    move |done, all| {
        let bar = bar.get_or_insert_with(|| bytes("fetching", (all > 0).then_some(all)).with_message("PostgreSQL"));
        bar.set_position(done);
        if all > 0 && done >= all {
            bar.finish_and_clear();
        }
    }
}
