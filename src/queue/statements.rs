//! The statements about one queue.

use std::time::SystemTime;

use crate::postgres::sql::{Schema, Sql};

/// The statements about one queue.
#[derive(Debug)]
pub(crate) struct Statements {
    pub payload_type: Sql,
    pub take: Sql,
    pub cut: Sql,
    pub lease: Sql,
    pub lease_apart: Sql,
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
    pub reschedule_at: Sql,
    pub shift: Sql,
    /// `enqueue` for 1, 2, 3 … rows.
    pub enqueue: Vec<Sql>,
    /// The same, for rows of which some message has metadata.
    pub enqueue_with: Vec<Sql>,
}

impl Statements {
    /// Rows that one insert has at most.
    pub const ROWS: usize = 8;

    /// A connection remembers statements by their text, with the types that they had; a queue that was dropped and created anew is
    /// another, so its texts say since when it is.
    pub fn of(schema: &Schema, queue: &str, since: SystemTime) -> Self {
        let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros();
        let of = |name, text| Sql::of_queue(name, text, schema, queue).since(since);
        let by_rows = |name, text, columns| by_rows(name, text, columns, schema, queue, since);
        Self {
            payload_type: of("payload_type", include_str!("../../sql/payload_type.sql")),
            take: of("take", include_str!("../../sql/take.sql")),
            cut: of("cut", include_str!("../../sql/cut.sql")),
            lease: of("lease", include_str!("../../sql/lease.sql")),
            lease_apart: of("lease_apart", include_str!("../../sql/lease_apart.sql")),
            look: of("look", include_str!("../../sql/look.sql")),
            sweep: of("sweep", include_str!("../../sql/sweep.sql")),
            carve: of("carve", include_str!("../../sql/carve.sql")),
            put_back: of("put_back", include_str!("../../sql/put_back.sql")),
            release: of("release", include_str!("../../sql/release.sql")),
            ack: of("ack", include_str!("../../sql/ack.sql")),
            archive: of("archive", include_str!("../../sql/archive.sql")),
            retry: of("retry", include_str!("../../sql/retry.sql")),
            bury: of("bury", include_str!("../../sql/bury.sql")),
            extend: of("extend", include_str!("../../sql/extend.sql")),
            charge: of("charge", include_str!("../../sql/charge.sql")),
            enqueue_in: of("enqueue_in", include_str!("../../sql/enqueue_in.sql")),
            dead: of("dead", include_str!("../../sql/dead.sql")),
            replay: of("replay", include_str!("../../sql/replay.sql")),
            discard: of("discard", include_str!("../../sql/discard.sql")),
            stats: of("stats", include_str!("../../sql/stats.sql")),
            peek: of("peek", include_str!("../../sql/peek.sql")),
            archived: of("archived", include_str!("../../sql/archived.sql")),
            purge: of("purge", include_str!("../../sql/purge.sql")),
            prune: of("prune", include_str!("../../sql/prune.sql")),
            gone: of("gone", include_str!("../../sql/gone.sql")),
            find: of("find", include_str!("../../sql/find.sql")),
            pick: of("pick", include_str!("../../sql/pick.sql")),
            cancel: of("cancel", include_str!("../../sql/cancel.sql")),
            reschedule: of("reschedule", include_str!("../../sql/reschedule.sql")),
            reschedule_at: of("reschedule_at", include_str!("../../sql/reschedule_at.sql")),
            shift: of("shift", include_str!("../../sql/shift.sql")),
            enqueue: by_rows("enqueue", include_str!("../../sql/enqueue.sql"), 3),
            enqueue_with: by_rows("enqueue_with", include_str!("../../sql/enqueue_with.sql"), 4),
        }
    }
}

/// An insert of one row, and of 2, 3 … rows.
fn by_rows(name: &'static str, one: &str, columns: usize, schema: &Schema, queue: &str, since: u128) -> Vec<Sql> {
    let row = |at: usize| {
        let column = |column| format!("${}", at * columns + column);
        let more: Vec<String> = (2..=columns).map(column).collect();
        let due = column(1);
        format!(
            "(case when {due}::float8 >= 0 then trunkline.clock() + {due}::float8 * interval '1 second' else greatest(trunkline.clock(), to_timestamp(-{due}::float8)) end, {})",
            more.join(", ")
        )
    };
    let many = |rows| (0..rows).map(row).collect::<Vec<_>>().join(", ");
    let all = |rows| Sql::of_queue(name, &one.replace(&row(0), &many(rows)), schema, queue).since(since);
    (1..=Statements::ROWS).map(all).collect()
}
