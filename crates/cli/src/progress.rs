//! Shows progress on a terminal. Shows nothing if the output is not a terminal.

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The interval at which a bar is redrawn.
pub const TICK: Duration = Duration::from_millis(100);

fn target() -> ProgressDrawTarget {
    if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸─")
}

/// Creates a group of bars, one below the other.
pub fn bars() -> MultiProgress {
    MultiProgress::with_draw_target(target())
}

/// Creates a bar for a known number of messages.
pub fn messages(name: &'static str, length: u64) -> ProgressBar {
    ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden())
        .with_style(style("{prefix:>9} {bar:40.cyan/dim} {human_pos:>11} of {human_len}  {per_sec}"))
        .with_prefix(name)
}

/// Creates a bar for an unknown number of messages. The bar's text shows further counts.
pub fn work(queue: &str) -> ProgressBar {
    ProgressBar::with_draw_target(None, target())
        .with_style(style("{spinner} {prefix}: {human_pos} done, {msg}"))
        .with_prefix(queue.to_owned())
}

/// Creates a bar for a number of bytes, which may be unknown.
pub fn bytes(name: &'static str, length: Option<u64>) -> ProgressBar {
    let template = match length {
        Some(_) => "{prefix:>9} {bar:40.cyan/dim} {bytes:>10} of {total_bytes}  {msg}",
        None => "{prefix:>9} {spinner} {bytes:>10}  {msg}",
    };
    ProgressBar::with_draw_target(length, target()).with_style(style(template)).with_prefix(name)
}

/// Creates a bar for the download of PostgreSQL, for [`trunkline_embedded::Builder::progress`].
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
