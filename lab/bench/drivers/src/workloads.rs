use crate::work::{Kind, MANY};

/// A kind of operation, and the number of these operations in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    pub name: &'static str,
    pub kind: Kind,
    pub count: usize,
    /// The number of statements per turn if each is sent separately. Costs are shown per statement.
    pub statements: usize,
    /// Set if the workload is also measured with a network delay.
    pub far: bool,
    /// The rows that exist before a turn, as `(n, k)`. `n` is their number. If `k` is not 0, every
    /// `k`-th row is missing.
    pub there: (usize, usize),
    /// Set if commits wait for the disk, which is the default. If each statement is a transaction,
    /// the result depends on the disk and not on the driver.
    pub durable: bool,
}

const fn workload(name: &'static str, kind: Kind, count: usize) -> Workload {
    Workload { name, kind, count, statements: count, far: true, there: (0, 0), durable: true }
}

/// All workloads, in the order of the tables.
pub const WORKLOADS: &[Workload] = &[
    workload("get ×100", Kind::Get, 100),
    workload("insert ×100 returning", Kind::Insert, 100),
    Workload { there: (50, 0), ..workload("upsert ×100", Kind::Upsert, 100) },
    workload("insert many ×1000", Kind::InsertMany, 1000),
    Workload { there: (200, 0), statements: 101, ..workload("delete ×100, select", Kind::DeleteThenSelect, 100) },
    Workload { there: (200, 0), ..workload("delete ×100", Kind::Delete, 100) },
    Workload { there: (100, 4), statements: 101, ..workload("mixed ×100, select", Kind::MixedThenSelect, 100) },
    workload("select list ×100", Kind::List, 100),
    workload("select in ×20", Kind::In, 20),
    Workload { there: (100, 0), ..workload("update ×100", Kind::Update, 100) },
    Workload { there: (100, 0), ..workload("replace ×100", Kind::Replace, 100) },
    Workload { there: (300, 0), ..workload("delete where ×100", Kind::DeleteWhere, 100) },
    workload("results parsing, 10,000 rows", Kind::Results, 1),
    Workload { statements: 1, ..workload(STREAM_WHOLE, Kind::Stream, 1000) },
    Workload { statements: 1, ..workload(STREAMS[0], Kind::Stream, 100) },
    Workload { statements: 1, ..workload(STREAMS[1], Kind::Stream, 10) },
    Workload { statements: 1, ..workload(STREAMS[2], Kind::Stream, 1) },
    near(workload("parameters rendering ×1000", Kind::Parameters, 1000)),
    Workload {
        statements: MANY,
        ..near(workload("parameters rendering, 6,000 in one statement", Kind::ManyParameters, 1))
    },
    Workload { statements: 40, ..workload("writing transaction ×20", Kind::Transfers, 20) },
    Workload {
        statements: 40,
        durable: false,
        ..workload("writing transaction ×20, no commit waits for the disk", Kind::Transfers, 20)
    },
    near(workload(ENTRIES, Kind::Append, 1000)),
    near(workload(INSERTS, Kind::Insert, 1000)),
    near(workload(SELECTS, Kind::Select, 1000)),
    near(workload(GETS, Kind::Get, 1000)),
];

/// The workloads that bars refer to by name.
pub const ENTRIES: &str = "insert ×1000, two columns";
pub const INSERTS: &str = "insert ×1000 returning";
pub const SELECTS: &str = "select ×1000";
pub const GETS: &str = "get ×1000";
pub const STREAM_WHOLE: &str = "stream of 1,000 rows, at once";
pub const STREAMS: [&str; 3] =
    ["stream of 1,000 rows, chunks of 100", "stream of 1,000 rows, chunks of 10", "stream of 1,000 rows, one by one"];

const fn near(workload: Workload) -> Workload {
    Workload { far: false, ..workload }
}
