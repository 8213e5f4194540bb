//! Statements about the schema that holds the queues.

use trunkline::{
    Db, Result,
    postgres::{Params, Rows, Statement, Transaction},
};

/// The text of a statement in which `trunkline.` and `'trunkline'` have been replaced by the
/// schema's actual name.
///
/// The schema's name is filled in first, so that a queue may have the name `trunkline` or
/// `trunkline.x`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(String);

impl Text {
    /// Returns `text` with the schema of `db`.
    pub fn of(db: &Db, text: &str) -> Self {
        Self::in_schema(db.schema_name(), text)
    }

    /// Returns `text` with this schema. The schema's name needs no quotes: `[a-z][a-z0-9_]*`.
    pub fn in_schema(schema: &str, text: &str) -> Self {
        Self(text.replace("trunkline.", &format!("{schema}.")).replace("'trunkline'", &format!("'{schema}'")))
    }

    /// Fills a placeholder such as `{queue}` with a value, which contains no placeholders itself.
    #[must_use]
    pub fn with(self, hole: &str, value: &str) -> Self {
        Self(self.0.replace(&format!("{{{hole}}}"), value))
    }

    #[must_use]
    pub fn with_text(self, hole: &str, text: &Self) -> Self {
        self.with(hole, &text.0)
    }

    /// Fills the placeholders for a queue's tables, such as `{dead}` with `"dead_emails"`, and
    /// `{name}` with the queue's name as a literal.
    ///
    /// A queue's name contains no quotes: `[a-z][a-z0-9_.-]*`.
    #[must_use]
    pub fn with_tables(self, queue: &str) -> Self {
        ["queue", "dead", "archive", "lane", "line", "unique", "id"]
            .into_iter()
            .fold(self, |text, kind| text.with(kind, &format!("\"{kind}_{queue}\"")))
            .with("name", &format!("'{queue}'"))
    }

    /// Returns one query with the rows of all queries; `None` if there are none.
    pub fn all_of(texts: impl Iterator<Item = Self>) -> Option<Self> {
        let all: Vec<String> = texts.map(|text| format!("(\n{}\n)", text.0)).collect();
        (!all.is_empty()).then(|| Self(all.join(" union all ")))
    }

    /// Returns the statement that shows the query's plan.
    #[must_use]
    pub fn explained(self) -> Self {
        Self(format!("explain {}", self.0))
    }

    pub fn into_string(self) -> String {
        self.0
    }

    pub async fn run<P: Params, R: Rows>(self, db: &Db, params: P) -> Result<R> {
        let statement: Statement<P, R> = Statement::of(self.0);
        db.run_in_catalog(&statement, params).await
    }

    pub async fn run_in<P: Params, R: Rows>(self, transaction: &Transaction, params: P) -> Result<R> {
        let statement: Statement<P, R> = Statement::of(self.0);
        transaction.run(&statement, params).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_named_like_the_schema_keeps_its_name() {
        let text = "select '{x}', {name} from trunkline.{dead} where 'trunkline'::regnamespace";
        for queue in ["trunkline", "trunkline.x", "my-trunkline.y"] {
            let filled = Text::in_schema("other", text).with_tables(queue).into_string();
            let expected = format!("select '{{x}}', '{queue}' from other.\"dead_{queue}\" where 'other'::regnamespace");
            assert_eq!(filled, expected);
        }
    }
}
