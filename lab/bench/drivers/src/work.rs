use std::ops::Range;

use crate::person::Person;

/// An operation of one or several statements. Every driver expresses it in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The smallest statement: `select $1::int8`.
    Select,
    /// Selects a row by its key.
    Get,
    /// Selects a hundred rows by a key that they share.
    List,
    /// Selects a hundred rows by a list of their keys.
    In,
    /// Inserts rows, and returns the id of each.
    Insert,
    /// Inserts rows into a table without an index, which is the cheapest possible insert.
    Append,
    /// Inserts or updates rows, half of which exist.
    Upsert,
    /// Inserts all rows at once, in the form that the driver provides for bulk inserts.
    InsertMany,
    /// Deletes every other row.
    Delete,
    /// Deletes every other row, and then selects the remaining rows.
    DeleteThenSelect,
    /// Inserts, updates, deletes and upserts, and then selects the remaining rows.
    MixedThenSelect,
    /// Updates one column.
    Update,
    /// Updates every column.
    Replace,
    /// Deletes three rows by a range.
    DeleteWhere,
    /// Selects ten thousand rows, without parameters, to measure decoding.
    Results,
    /// Reads a thousand rows in chunks of `count` rows.
    Stream,
    /// Sends six parameters that the statement discards, to measure encoding.
    Parameters,
    /// Sends the columns of `MANY` rows as parameters of one statement, which discards them. One
    /// statement has one answer, so awaiting each answer costs nothing extra here.
    ManyParameters,
    /// Runs transactions of two updates that return values, one transaction after another.
    Transfers,
}

impl Kind {
    /// Returns true if the operation changes the database.
    #[must_use]
    pub fn writes(self) -> bool {
        !matches!(
            self,
            Self::Select
                | Self::Get
                | Self::List
                | Self::In
                | Self::Results
                | Self::Stream
                | Self::Parameters
                | Self::ManyParameters
        )
    }
}

/// The work of one turn.
#[derive(Debug, Clone, Copy)]
pub struct Work<'a> {
    /// The operation.
    pub kind: Kind,
    /// The number of operations, or of rows.
    pub count: usize,
    /// The first id that belongs to this turn.
    pub first: i64,
    /// The values to write, at least as many as the work needs.
    pub people: &'a [Person],
}

/// The number of rows of `roster`, which is only read.
pub const ROSTER: i64 = 10_000;
/// The number of rows whose columns are the parameters of one statement.
pub const MANY: usize = 1000;
/// The number of accounts between which money is transferred.
pub const ACCOUNTS: i64 = 100;

impl<'a> Work<'a> {
    /// Returns the ids of this turn.
    #[must_use]
    pub fn ids(&self) -> Range<i64> {
        self.first..self.first + self.count as i64
    }

    /// Returns ids of rows of `roster`, in no particular order.
    #[must_use]
    pub fn known(&self) -> Vec<i64> {
        (0..self.count as i64).map(|k| 1 + k * 97 % ROSTER).collect()
    }

    /// Returns lists of ids of `roster`, each with a hundred ids.
    #[must_use]
    pub fn lists(&self) -> Vec<Vec<i64>> {
        let list = |k: i64| (0..100).map(|at| 1 + (k * 500 + at * 37) % ROSTER).collect();
        (0..self.count as i64).map(list).collect()
    }

    /// Returns keys that a hundred rows of `roster` share.
    #[must_use]
    pub fn teams(&self) -> Range<i32> {
        0..self.count as i32
    }

    /// Returns the rows to write, each with its id.
    #[must_use]
    pub fn rows(&self) -> impl ExactSizeIterator<Item = (i64, &'a Person)> + Clone + use<'a> {
        let first = self.first;
        self.people[..self.count].iter().enumerate().map(move |(k, person)| (first + k as i64, person))
    }

    /// Returns the people whose columns are the parameters of one statement.
    #[must_use]
    pub fn many(&self) -> &'a [Person] {
        &self.people[..MANY]
    }

    /// Returns every other id of a range that is twice as long.
    #[must_use]
    pub fn others(&self) -> impl ExactSizeIterator<Item = i64> + Clone + use<> {
        let first = self.first;
        (0..self.count).map(move |k| first + 2 * k as i64)
    }

    /// Returns the first id of each range of three ids.
    #[must_use]
    pub fn starts(&self) -> impl ExactSizeIterator<Item = i64> + Clone + use<> {
        let first = self.first;
        (0..self.count).map(move |k| first + 3 * k as i64)
    }

    /// Returns the two accounts and the amount of each transfer.
    pub fn transfers(&self) -> impl Iterator<Item = (i64, i64, i64)> + use<> {
        (0..self.count as i64).map(|k| (1 + k % ACCOUNTS, 1 + (k * 7 + 1) % ACCOUNTS, 1 + k % 5))
    }

    /// Returns the exclusive end of the ids that this turn may use.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.first + 3 * self.count as i64
    }
}

/// The result of a turn, which must be the same for all ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// The number of rows that were returned or changed.
    pub rows: u64,
    /// A checksum of the rows that were returned.
    pub sum: i64,
}

impl Done {
    /// Returns the result of a statement that changed `rows` rows, or returned rows without values
    /// to compare.
    #[must_use]
    pub fn touched(rows: u64) -> Self {
        Self { rows, sum: 0 }
    }

    /// Returns the result for these rows. Ids are counted from `first`, so that every turn has the
    /// same sum.
    pub fn people<'a>(people: impl IntoIterator<Item = &'a Person>, first: i64) -> Self {
        people
            .into_iter()
            .fold(Self::default(), |done, person| Self { rows: done.rows + 1, sum: done.sum + person.sum() - first })
    }

    /// Returns the result for these numbers.
    pub fn numbers(numbers: impl IntoIterator<Item = i64>) -> Self {
        numbers.into_iter().fold(Self::default(), |done, number| Self { rows: done.rows + 1, sum: done.sum + number })
    }

    /// Adds two results.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { rows: self.rows + other.rows, sum: self.sum + other.sum }
    }
}
