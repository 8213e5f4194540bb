//! Errors and notices from the server.

use std::{error, fmt};

use tokio_postgres::error::{ErrorPosition, SqlState};

/// An `ErrorResponse` or `NoticeResponse`, with all of its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerError {
    /// `ERROR`, `FATAL`, `PANIC`, `WARNING`, `NOTICE`, `DEBUG`, `INFO` or `LOG`, never translated.
    pub severity: String,
    pub code: SqlState,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    pub position: Option<ErrorPosition>,
    /// The call stack of the functions, innermost first.
    pub context: Option<String>,
    pub schema: Option<String>,
    pub table: Option<String>,
    pub column: Option<String>,
    pub datatype: Option<String>,
    pub constraint: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub routine: Option<String>,
}

impl ServerError {
    /// Reads the body of a message. Skips missing and malformed fields, so that no error is lost.
    pub fn parse(body: &[u8]) -> Self {
        let mut error = Self::empty();
        let (mut severity, mut inner_position, mut inner_query) = (None, None, None);
        for field in body.split(|byte| *byte == 0) {
            let Some((kind, value)) = field.split_first() else { continue };
            let value = String::from_utf8_lossy(value).into_owned();
            match kind {
                b'V' => severity = Some(value),
                // the translated severity, which is the only one that some poolers send
                b'S' => drop(severity.get_or_insert(value)),
                b'C' => error.code = SqlState::from_code(&value),
                b'M' => error.message = value,
                b'D' => error.detail = Some(value),
                b'H' => error.hint = Some(value),
                b'P' => error.position = value.parse().ok().map(ErrorPosition::Original),
                b'p' => inner_position = value.parse().ok(),
                b'q' => inner_query = Some(value),
                b'W' => error.context = Some(value),
                b's' => error.schema = Some(value),
                b't' => error.table = Some(value),
                b'c' => error.column = Some(value),
                b'd' => error.datatype = Some(value),
                b'n' => error.constraint = Some(value),
                b'F' => error.file = Some(value),
                b'L' => error.line = value.parse().ok(),
                b'R' => error.routine = Some(value),
                _ => {}
            }
        }
        error.severity = severity.unwrap_or(error.severity);
        if let (None, Some(position), Some(query)) = (&error.position, inner_position, inner_query) {
            error.position = Some(ErrorPosition::Internal { position, query });
        }
        error
    }

    /// Returns true if the server closes the connection after this error.
    pub fn is_fatal(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
    }

    /// Returns the message, the detail and the hint on one line.
    pub fn told(&self) -> String {
        let detail = self.detail.as_ref().map_or(String::new(), |detail| format!(" ({detail})"));
        let hint = self.hint.as_ref().map_or(String::new(), |hint| format!(". {hint}"));
        format!("{}{detail}{hint}", self.message)
    }

    fn empty() -> Self {
        Self {
            severity: "ERROR".to_owned(),
            code: SqlState::INTERNAL_ERROR,
            message: "an error without a text".to_owned(),
            detail: None,
            hint: None,
            position: None,
            context: None,
            schema: None,
            table: None,
            column: None,
            datatype: None,
            constraint: None,
            file: None,
            line: None,
            routine: None,
        }
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.severity, self.message)?;
        self.detail.as_ref().map_or(Ok(()), |detail| write!(out, "\nDETAIL: {detail}"))?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(out, "\nHINT: {hint}"))
    }
}

impl error::Error for ServerError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_read() {
        let body = b"SFEHLER\0VERROR\0C23505\0Mduplicate\0Dkey 1\0Hdo not\0P7\0Wline 1\0su\0tv\0cw\0dx\0ny\0Fz.c\0L12\0R_bt\0?new\0\0";
        let error = ServerError::parse(body);
        assert_eq!(error.to_string(), "ERROR: duplicate\nDETAIL: key 1\nHINT: do not");
        assert_eq!(error.told(), "duplicate (key 1). do not");
        assert_eq!((error.code, error.position), (SqlState::UNIQUE_VIOLATION, Some(ErrorPosition::Original(7))));
        let named = [error.context, error.schema, error.table, error.column, error.datatype, error.constraint];
        let wanted = ["line 1", "u", "v", "w", "x", "y"].map(|text| Some(text.to_owned()));
        assert_eq!(named, wanted);
        assert_eq!((error.file.as_deref(), error.line, error.routine.as_deref()), (Some("z.c"), Some(12), Some("_bt")));
    }

    #[test]
    fn position_in_inner_statement_is_not_blamed_on_outer() {
        let error = ServerError::parse(b"VFATAL\0C42601\0Mno\0p3\0qselect\0\0");
        assert_eq!(error.position, Some(ErrorPosition::Internal { position: 3, query: "select".to_owned() }));
        assert!(error.is_fatal());
    }

    #[test]
    fn a_broken_error_is_still_one() {
        for body in [&b""[..], b"\0", b"M", b"\0\0\0", b"Pseven\0Lx\0\xff\xfe"] {
            assert_eq!(ServerError::parse(body).code, SqlState::INTERNAL_ERROR, "{body:?}");
        }
    }
}
