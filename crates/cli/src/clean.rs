//! Makes untrusted text safe to print on a terminal.

/// Returns a text as one line, without characters that control a terminal.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_invisible(c) { ' ' } else { c }).collect()
}

/// Returns true for line separators, and for marks that change the direction of writing.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
