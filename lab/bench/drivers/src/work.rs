use std::ops::Range;

use crate::person::Person;

/// What a statement, or a few, do: every driver has its own words for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `select $1::int8`, the smallest there is.
    Select,
    /// A row by its key.
    Get,
    /// A hundred rows by a key that is not theirs alone.
    List,
    /// A hundred rows by a list of their keys.
    In,
    /// Rows, each with the id that it gets.
    Insert,
    /// Rows of a table without an index: the least that an insert can cost.
    Append,
    /// Half of the rows are there.
    Upsert,
    /// All rows at once, in whatever form is made for that.
    InsertMany,
    /// Every other row.
    Delete,
    /// Every other row, and then those that are left.
    DeleteThenSelect,
    /// Inserts, updates, deletes and upserts, and then what is there.
    MixedThenSelect,
    /// One column.
    Update,
    /// Every column.
    Replace,
    /// Three rows by a range.
    DeleteWhere,
    /// Ten thousand rows, without parameters: decoding.
    Results,
    /// Six parameters that are thrown away: encoding.
    Parameters,
    /// Two updates with answers in a transaction, one transaction after another.
    Transfers,
}

impl Kind {
    /// Whether there is something to commit.
    #[must_use]
    pub fn writes(self) -> bool {
        !matches!(self, Self::Select | Self::Get | Self::List | Self::In | Self::Results | Self::Parameters)
    }
}

/// What is to be done in one turn.
#[derive(Debug, Clone, Copy)]
pub struct Work<'a> {
    /// What.
    pub kind: Kind,
    /// How many of them.
    pub count: usize,
    /// The first of the ids that are this turn's own.
    pub first: i64,
    /// Values to write; there are as many as are needed.
    pub people: &'a [Person],
}

/// Rows of `roster`, which is only read.
pub const ROSTER: i64 = 10_000;
/// Accounts that money goes between.
pub const ACCOUNTS: i64 = 100;

impl<'a> Work<'a> {
    /// The ids of this turn.
    #[must_use]
    pub fn ids(&self) -> Range<i64> {
        self.first..self.first + self.count as i64
    }

    /// Ids of rows of `roster`, in no order.
    #[must_use]
    pub fn known(&self) -> Vec<i64> {
        (0..self.count as i64).map(|k| 1 + k * 97 % ROSTER).collect()
    }

    /// Lists of such ids, a hundred each.
    #[must_use]
    pub fn lists(&self) -> Vec<Vec<i64>> {
        let list = |k: i64| (0..100).map(|at| 1 + (k * 500 + at * 37) % ROSTER).collect();
        (0..self.count as i64).map(list).collect()
    }

    /// Keys that a hundred rows of `roster` share.
    #[must_use]
    pub fn teams(&self) -> Range<i32> {
        0..self.count as i32
    }

    /// A value a row, and the row's id.
    #[must_use]
    pub fn rows(&self) -> impl ExactSizeIterator<Item = (i64, &'a Person)> + Clone + use<'a> {
        let first = self.first;
        self.people[..self.count].iter().enumerate().map(move |(k, person)| (first + k as i64, person))
    }

    /// Every other id, of twice as many rows.
    #[must_use]
    pub fn others(&self) -> impl ExactSizeIterator<Item = i64> + Clone + use<> {
        let first = self.first;
        (0..self.count).map(move |k| first + 2 * k as i64)
    }

    /// Where ranges of three ids begin.
    #[must_use]
    pub fn starts(&self) -> impl ExactSizeIterator<Item = i64> + Clone + use<> {
        let first = self.first;
        (0..self.count).map(move |k| first + 3 * k as i64)
    }

    /// The accounts and the sum of each transfer.
    pub fn transfers(&self) -> impl Iterator<Item = (i64, i64, i64)> + use<> {
        (0..self.count as i64).map(|k| (1 + k % ACCOUNTS, 1 + (k * 7 + 1) % ACCOUNTS, 1 + k % 5))
    }

    /// After the ids that a turn may use.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.first + 3 * self.count as i64
    }
}

/// What came of it, which must be the same for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// Rows that came or were touched.
    pub rows: u64,
    /// Of what came.
    pub sum: i64,
}

impl Done {
    /// So many rows were touched, or came with nothing to compare.
    #[must_use]
    pub fn touched(rows: u64) -> Self {
        Self { rows, sum: 0 }
    }

    /// These rows came; a row of this turn counts from its first id.
    pub fn people<'a>(people: impl IntoIterator<Item = &'a Person>, first: i64) -> Self {
        people
            .into_iter()
            .fold(Self::default(), |done, person| Self { rows: done.rows + 1, sum: done.sum + person.sum() - first })
    }

    /// These numbers came.
    pub fn numbers(numbers: impl IntoIterator<Item = i64>) -> Self {
        numbers.into_iter().fold(Self::default(), |done, number| Self { rows: done.rows + 1, sum: done.sum + number })
    }

    /// Both of them.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { rows: self.rows + other.rows, sum: self.sum + other.sum }
    }
}
