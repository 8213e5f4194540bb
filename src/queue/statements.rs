//! The SQL statements of one queue.

use std::time::SystemTime;

use crate::postgres::sql::{Schema, Sql};

#[derive(Debug)]
pub(crate) struct Statements {
    pub payload_type: Sql,
    pub take: Sql,
    pub cut: Sql,
    pub lease: Sql,
    pub lease_together: Sql,
    pub look: Sql,
    pub sweep: Sql,
    pub carve: Sql,
    pub put_back: Sql,
    pub release: Sql,
    pub ack: Sql,
    pub archive: Sql,
    pub retry: Sql,
    pub bury: Sql,
    pub extend: Sql,
    pub charge: Sql,
    pub enqueue_in: Sql,
    pub enqueue_unique: Sql,
    pub enqueue_unique_waiting: Sql,
    pub enqueue_in_unique: Sql,
    pub enqueue_row: Sql,
    pub enqueue_rows: Sql,
    pub own_columns: Sql,
    pub dead: Sql,
    pub replay: Sql,
    pub discard: Sql,
    pub stats: Sql,
    pub peek: Sql,
    pub archived: Sql,
    pub purge: Sql,
    pub prune: Sql,
    pub find: Sql,
    pub gone: Sql,
    pub pick: Sql,
    pub cancel: Sql,
    pub reschedule: Sql,
    pub shift: Sql,
    pub set_schedule: Sql,
    pub inserts: Inserts,
    pub lanes: Sql,
    pub lanes_in: Sql,
    pub leave: Sql,
    pub line: Sql,
}

/// The maximum number of rows of one insert.
const ROWS: usize = 8;
/// The maximum number of rows of one insert in a queue with keys, where each partition has its own
/// rows.
const ROWS_OF_LANES: usize = 32;

/// The inserts of a queue for 1, 2, 3 … rows, chosen when the queue is opened.
#[derive(Debug)]
pub(crate) enum Inserts {
    /// The inserts of a queue that has neither priorities nor keys.
    Plain {
        /// Inserts of rows that are due now and have no metadata.
        bare: Vec<Sql>,
        /// Inserts of all other rows.
        full: Vec<Sql>,
    },
    Priority(Vec<Sql>),
    Keyed(Vec<Sql>),
}

impl Inserts {
    /// The maximum number of rows of one insert.
    pub fn rows(&self) -> usize {
        let (Self::Plain { bare: all, .. } | Self::Priority(all) | Self::Keyed(all)) = self;
        all.len()
    }
}

/// The kinds of queues. Each kind has a folder in `sql/statements`, with the statements whose form
/// differs by kind, and a folder in `sql/queue`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum QueueKind {
    Plain,
    Priority,
    Partitioned,
}

impl QueueKind {
    pub fn of(priorities: u32, partitions: u32) -> Self {
        match (priorities, partitions) {
            (0 | 1, 0) => Self::Plain,
            (_, 0) => Self::Priority,
            _ => Self::Partitioned,
        }
    }

    fn texts(self) -> Texts {
        match self {
            Self::Plain => Texts {
                enqueue_in: include_str!("../../sql/statements/plain/enqueue_in.sql"),
                dead: include_str!("../../sql/statements/plain/dead.sql"),
                peek: include_str!("../../sql/statements/plain/peek.sql"),
                archived: include_str!("../../sql/statements/plain/archived.sql"),
            },
            Self::Priority => Texts {
                enqueue_in: include_str!("../../sql/statements/priority/enqueue_in.sql"),
                dead: include_str!("../../sql/statements/priority/dead.sql"),
                peek: include_str!("../../sql/statements/priority/peek.sql"),
                archived: include_str!("../../sql/statements/priority/archived.sql"),
            },
            Self::Partitioned => Texts {
                enqueue_in: include_str!("../../sql/statements/partitioned/enqueue_in.sql"),
                dead: include_str!("../../sql/statements/partitioned/dead.sql"),
                peek: include_str!("../../sql/statements/partitioned/peek.sql"),
                archived: include_str!("../../sql/statements/partitioned/archived.sql"),
            },
        }
    }

    fn inserts(self, of: &impl Fn(&'static str, &str) -> Sql) -> Inserts {
        let inserts = |name, one: &str, columns, most| {
            let due = |column| format!("trunkline.due_from({column})");
            by_rows(name, one, (columns, due), most, of)
        };
        match self {
            Self::Plain => Inserts::Plain {
                bare: by_rows(
                    "enqueue",
                    include_str!("../../sql/statements/plain/enqueue.sql"),
                    (2, |size| size),
                    ROWS,
                    of,
                ),
                full: inserts("enqueue_with", include_str!("../../sql/statements/plain/enqueue_with.sql"), 4, ROWS),
            },
            Self::Priority => Inserts::Priority(inserts(
                "enqueue",
                include_str!("../../sql/statements/priority/enqueue.sql"),
                5,
                ROWS,
            )),
            Self::Partitioned => Inserts::Keyed(inserts(
                "enqueue",
                include_str!("../../sql/statements/partitioned/enqueue.sql"),
                6,
                ROWS_OF_LANES,
            )),
        }
    }
}

/// The statements whose form differs by kind of queue, except the inserts.
struct Texts {
    enqueue_in: &'static str,
    dead: &'static str,
    peek: &'static str,
    archived: &'static str,
}

impl Statements {
    /// Creates the statements of a queue that was created at `since`. A connection caches
    /// statements by their text, together with their types. A queue that is dropped and created
    /// again is a different queue, so each text contains the creation time.
    pub fn of(schema: &Schema, queue: &str, since: SystemTime, kind: QueueKind) -> Self {
        let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros();
        let of = |name, text: &str| Sql::filled(name, text, schema, queue).since(since);
        let texts = kind.texts();
        Self {
            payload_type: of("payload_type", include_str!("../../sql/statements/payload_type.sql")),
            take: of("take", include_str!("../../sql/statements/take.sql")),
            cut: of("cut", include_str!("../../sql/statements/cut.sql")),
            lease: of("lease", include_str!("../../sql/statements/lease.sql")),
            lease_together: of("lease_together", include_str!("../../sql/statements/lease_together.sql")),
            look: of("look", include_str!("../../sql/statements/look.sql")),
            sweep: of("sweep", include_str!("../../sql/statements/sweep.sql")),
            carve: of("carve", include_str!("../../sql/statements/carve.sql")),
            put_back: of("put_back", include_str!("../../sql/statements/put_back.sql")),
            release: of("release", include_str!("../../sql/statements/release.sql")),
            ack: of("ack", include_str!("../../sql/statements/ack.sql")),
            archive: of("archive", include_str!("../../sql/statements/archive.sql")),
            retry: of("retry", include_str!("../../sql/statements/retry.sql")),
            bury: of("bury", include_str!("../../sql/statements/bury.sql")),
            extend: of("extend", include_str!("../../sql/statements/extend.sql")),
            charge: of("charge", include_str!("../../sql/statements/charge.sql")),
            enqueue_in: of("enqueue_in", texts.enqueue_in),
            enqueue_unique: of("enqueue_unique", include_str!("../../sql/statements/enqueue_unique.sql")),
            enqueue_unique_waiting: of(
                "enqueue_unique_waiting",
                include_str!("../../sql/statements/enqueue_unique_waiting.sql"),
            ),
            enqueue_in_unique: of("enqueue_in_unique", include_str!("../../sql/statements/enqueue_in_unique.sql")),
            enqueue_row: of("enqueue_row", include_str!("../../sql/statements/enqueue_row.sql")),
            enqueue_rows: of("enqueue_rows", include_str!("../../sql/statements/enqueue_rows.sql")),
            own_columns: of("own_columns", include_str!("../../sql/statements/own_columns.sql")).reading(),
            dead: of("dead", texts.dead).reading(),
            replay: of("replay", include_str!("../../sql/statements/replay.sql")),
            discard: of("discard", include_str!("../../sql/statements/discard.sql")),
            stats: of("stats", include_str!("../../sql/statements/stats.sql")),
            peek: of("peek", texts.peek).reading(),
            archived: of("archived", texts.archived).reading(),
            purge: of("purge", include_str!("../../sql/statements/purge.sql")),
            prune: of("prune", include_str!("../../sql/statements/prune.sql")),
            gone: of("gone", include_str!("../../sql/statements/gone.sql")),
            find: of("find", include_str!("../../sql/statements/find.sql")).reading(),
            pick: of("pick", include_str!("../../sql/statements/pick.sql")),
            cancel: of("cancel", include_str!("../../sql/statements/cancel.sql")),
            reschedule: of("reschedule", include_str!("../../sql/statements/reschedule.sql")),
            shift: of("shift", include_str!("../../sql/statements/shift.sql")),
            set_schedule: of("set_schedule", include_str!("../../sql/statements/set_schedule.sql")),
            inserts: kind.inserts(&of),
            lanes: of("lease", include_str!("../../sql/statements/partitioned/lanes.sql")),
            lanes_in: of("look", include_str!("../../sql/statements/partitioned/lanes_in.sql")),
            leave: of("leave", include_str!("../../sql/statements/partitioned/leave.sql")),
            line: of("line", include_str!("../../sql/statements/partitioned/line.sql")),
        }
    }
}

/// Creates inserts of 1, 2, 3 … `most` rows from the text of an insert of one row. `columns` is the
/// number of parameters per row. `first` writes the first of them as the text does, for example
/// with a cast.
fn by_rows(
    name: &'static str,
    one: &str,
    (columns, first): (usize, impl Fn(String) -> String),
    most: usize,
    of: &impl Fn(&'static str, &str) -> Sql,
) -> Vec<Sql> {
    let row = |at: usize| {
        let column = |column| format!("${}", at * columns + column);
        let more: Vec<String> = (2..=columns).map(column).collect();
        format!("({}, {})", first(column(1)), more.join(", "))
    };
    let many = |rows| (0..rows).map(row).collect::<Vec<_>>().join(", ");
    let all = |rows| of(name, &one.replace(&row(0), &many(rows)));
    (1..=most).map(all).collect()
}
