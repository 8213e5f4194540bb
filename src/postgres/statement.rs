//! Statements as values, with the types of their parameters and results.

use std::{borrow::Cow, fmt, marker::PhantomData};

/// A statement with parameters of type `P` and a result of type `R`.
///
/// Declare a statement as a `static`. Parameter values never become part of its text. A connection
/// prepares a text when it first runs it. Two statements with the same text share one prepared
/// statement.
///
/// ```
/// use trunkline::postgres::Statement;
///
/// static OWNER: Statement<(i64,), Option<(String,)>> =
///     Statement::new("select owner from account where id = $1");
/// static RENAME: Statement<(i64, &str), u64> =
///     Statement::new("update account set owner = $2 where id = $1");
/// static SOME: Statement<(&[i64],), Vec<(i64, String)>> =
///     Statement::new("select id, owner from account where id = any($1)");
/// ```
///
/// [`Params`](crate::postgres::Params) lists the possible types `P`, and
/// [`Rows`](crate::postgres::Rows) lists the possible types `R`.
pub struct Statement<P, R> {
    text: Cow<'static, str>,
    shape: PhantomData<fn() -> (P, R)>,
}

impl<P, R> Statement<P, R> {
    /// Creates a statement with this text.
    #[must_use]
    pub const fn new(text: &'static str) -> Self {
        Self { text: Cow::Borrowed(text), shape: PhantomData }
    }

    /// Creates a statement whose text is built at run time. Create only a small number of different
    /// texts, because each text is prepared separately, and a connection caches at most 1,000
    /// statements.
    #[must_use]
    pub fn of(text: impl Into<String>) -> Self {
        Self { text: Cow::Owned(text.into()), shape: PhantomData }
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl<P, R> Clone for Statement<P, R> {
    fn clone(&self) -> Self {
        Self { text: self.text.clone(), shape: PhantomData }
    }
}

impl<P, R> fmt::Debug for Statement<P, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Statement").field(&self.text).finish()
    }
}
