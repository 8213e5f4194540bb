//! Classes of rows that may be compared: rows with the same promise, and rows that are called
//! through SQL.

use crate::results::Row;

/// A class of rows, with its name in a sentence.
pub struct Class {
    pub name: &'static str,
    pub has: fn(&Row) -> bool,
}

/// The classes by the promise to a consumer. Rows that only send have a separate class.
pub const PROMISES: [Class; 4] = [
    Class { name: "sent", has: is_sent },
    Class { name: "at most once", has: |row| !is_sent(row) && is_at_most_once(row) },
    Class { name: "at least once", has: is_at_least_once },
    Class { name: "exactly once", has: is_exactly_once },
];
/// The class of rows in which a program calls SQL functions without a library.
pub const SQL: Class = Class {
    name: "SQL with SQL",
    has: |row| ["sql", "exactly-once-sql", "pgmq", "pgq"].contains(&row.contender.as_str()),
};

fn is_sent(row: &Row) -> bool {
    row.case.starts_with("send")
}

fn is_at_most_once(row: &Row) -> bool {
    let name = row.contender.as_str();
    row.case.starts_with("pop")
        // The dequeue of this queue is one transaction, which may or may not include the work.
        || !is_exactly_once(row) && ["trunkline-at-most-once", "hand-over", "hasql-queue"].contains(&name)
}

fn is_at_least_once(row: &Row) -> bool {
    let both = row.contender == "hasql-queue" && !row.case.starts_with("pop") && !is_exactly_once(row);
    !is_sent(row) && !is_exactly_once(row) && (both || !is_at_most_once(row))
}

fn is_exactly_once(row: &Row) -> bool {
    row.suite == "exactly-once"
}

#[cfg(test)]
mod tests {
    use super::{PROMISES, SQL};
    use crate::report::fake;

    #[test]
    fn row_is_in_the_classes_of_what_it_promises() {
        for (suite, case, contender, expected, is_sql) in [
            ("throughput", "cycle", "trunkline", vec!["at least once"], false),
            ("throughput", "cycle", "hasql-queue", vec!["at most once", "at least once"], false),
            ("throughput", "send-sequential", "hasql-queue", vec!["sent"], false),
            ("layer-comparison", "pop-batch-10", "pgmq", vec!["at most once"], true),
            ("layer-comparison", "full-cycle", "sql", vec!["at least once"], true),
            ("grid", "1/1, notify", "trunkline-at-most-once", vec!["at most once"], false),
            ("exactly-once", "a ledger", "exactly-once-sql", vec!["exactly once"], true),
            ("exactly-once", "a ledger", "hasql-queue", vec!["exactly once"], false),
        ] {
            let row = fake::row(suite, case, contender);
            let names: Vec<&str> = PROMISES.iter().filter(|class| (class.has)(&row)).map(|class| class.name).collect();
            assert_eq!((names, (SQL.has)(&row)), (expected, is_sql), "{suite} {case} {contender}");
        }
    }
}
