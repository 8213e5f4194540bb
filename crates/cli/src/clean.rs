//! Text of others, fit for a terminal.

/// Text of others, fit for a terminal: on one line, and without anything that a terminal obeys.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_invisible(c) { ' ' } else { c }).collect()
}

/// Line separators, and marks that turn the direction of writing around.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
