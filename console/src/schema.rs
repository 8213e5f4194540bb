//! The schema that holds the queues.

/// A statement about another schema. Its name needs no quotes: `[a-z][a-z0-9_]*`.
pub fn in_schema(text: &str, schema: &str) -> String {
    text.replace("trunkline.", &format!("{schema}.")).replace("'trunkline'", &format!("'{schema}'"))
}
