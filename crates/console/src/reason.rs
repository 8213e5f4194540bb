//! Formats an error's reason for people. Leaves out the statement, because it is Trunkline's own.
//! Also recognizes the errors of a limit and of a missing right.

use std::error::Error as _;

use trunkline::Error;

/// Returns the server's message, its detail and its hint. For any other error, returns the error's
/// text.
pub fn reason(error: &Error) -> String {
    match error.failed_statement() {
        Some(_) => server_reason(error),
        None => error.to_string(),
    }
}

/// Returns the reason without the library's advice, for a caller that has better advice.
pub fn server_reason(error: &Error) -> String {
    let Some(source) = error.source().filter(|_| error.sqlstate().is_some()) else { return error.to_string() };
    let text = source.to_string();
    let text = text.split_once(": ").map_or(text.as_str(), |(_severity, rest)| rest);
    let (text, hint) = text.split_once("\nHINT: ").unwrap_or((text, ""));
    let (message, detail) = text.split_once("\nDETAIL: ").unwrap_or((text, ""));
    let detail = if detail.is_empty() { String::new() } else { format!(" ({detail})") };
    let hint = if hint.is_empty() { String::new() } else { format!(". {hint}") };
    format!("{message}{detail}{hint}")
}

/// Returns true if the role lacks a right.
pub fn lacks_right(error: &Error) -> bool {
    error.sqlstate().is_some_and(|state| state.code() == "42501")
}

/// Returns true if the server gave up the statement, because it took too long or waited for a lock.
pub fn is_late(error: &Error) -> bool {
    error.sqlstate().is_some_and(|state| ["57014", "55P03"].contains(&state.code()))
}
