//! Makes foreign text fit for a terminal.

/// Returns a text on one line, without anything that controls a terminal.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_invisible(c) { ' ' } else { c }).collect()
}

/// Line separators, and marks that turn the direction of writing around.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
