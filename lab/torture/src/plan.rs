//! The queues of a run, and how they are used.

use std::time::Duration;

/// How long leases last: shorter than a process is stopped for.
pub const LEASE: Duration = Duration::from_secs(2);
pub const MAX_ATTEMPTS: u32 = 5;
/// Longest delay of a message: short enough for a run of a minute.
pub const DELAY_MS: u64 = 2_500;

/// The reason of every burial; any other dead letter has used up its attempts.
pub const BURIED: &str = "no use";

/// Taken: at most once.
pub const ONCE: &str = "once";
/// Leased, by consumers and by SQL clients: at least once. With priorities.
pub const LEAST: &str = "least";
/// Taken in transactions, or acknowledged in them, with entries in a ledger: exactly once.
pub const EXACT: &str = "exact";
/// A worker's: at least once.
pub const WORKS: &str = "works";
/// Of many producers and one consumer with one task, which checks the order.
pub const FIFO: &str = "fifo";
/// Rare messages, and one consumer that only listens.
pub const BELL: &str = "bell";
/// Purged now and then.
pub const PURGED: &str = "purged";
/// With priorities, and one consumer with one task, which now and then lets a backlog come up.
pub const RANKED: &str = "ranked";
/// With a limit of leased messages, which several processes meet.
pub const CAPPED: &str = "capped";
/// With a limit of messages a second, which several processes meet.
pub const METERED: &str = "metered";
/// With keys, along lanes: workers', and clients' of the SQL functions.
pub const KEYED: &str = "keyed";
/// With unique keys, which enqueues race for.
pub const UNIQUE: &str = "unique";

/// Of schedules alone; nobody consumes it.
pub const TICKS: &str = "ticks";
/// So many, each of them every second.
pub const SCHEDULES: usize = 40;
pub const PRIORITIES: u32 = 3;
/// Of each step of priority in [`RANKED`]: of a backlog, the lowest has its turn before the latest
/// of the highest.
pub const HEAD_START: Duration = Duration::from_millis(400);
/// The limit of [`CAPPED`].
pub const MAX_LEASED: u32 = 6;
/// The limits of [`METERED`]: somewhat less than what is enqueued there.
pub const PER_SECOND: f64 = 40.0;
pub const BURST: u32 = 10;

/// The keys of [`KEYED`], and its lanes: fewer, so that keys share them.
pub const KEYS: u64 = 12;
pub const LANES: u32 = 8;
/// So many there become in time, where the queue is altered.
pub const MOST_LANES: u32 = 64;
/// A lane is held for so long after it was read.
pub const HOLD: Duration = Duration::from_secs(3);
/// Of [`UNIQUE`].
pub const UNIQUE_KEYS: u64 = 16;

pub const QUEUES: [&str; 12] = [ONCE, LEAST, EXACT, WORKS, FIFO, BELL, PURGED, RANKED, CAPPED, METERED, KEYED, UNIQUE];

/// The tables of effects: an entry a message, and sums.
pub const LEDGER: &str = "
    create table ledger (tag bigint not null, amount bigint not null, op text not null);
    create table account (nr int primary key, sum bigint not null default 0, entries bigint not null default 0);
    insert into account (nr) select generate_series(0, 15);";
/// In the order of the accounts, so that two transactions cannot wait for each other.
pub const ENTER: &str = "insert into ledger (tag, amount, op) select e.tag, e.amount, $3 from unnest($1::bigint[], $2::bigint[]) e(tag, amount)";
pub const ADD: &str = "
    with sums as materialized (
        select e.nr, sum(e.amount) as sum, count(*) as entries from unnest($1::int[], $2::bigint[]) e(nr, amount) group by e.nr
    ), held as materialized (
        select a.nr from account a where a.nr in (select s.nr from sums s) order by a.nr for update)
    update account a set sum = a.sum + s.sum, entries = a.entries + s.entries from sums s, held h where a.nr = s.nr and h.nr = s.nr";
