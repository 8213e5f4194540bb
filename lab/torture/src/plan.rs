//! Defines the queues of a run, and how the processes use them.

use std::time::Duration;

/// The duration of leases. It is shorter than the time for which a fault stops a process.
pub const LEASE: Duration = Duration::from_secs(2);
pub const MAX_ATTEMPTS: u32 = 5;
/// The maximum delay of a message. It is short enough for a run of one minute.
pub const DELAY_MS: u64 = 2_500;

/// The reason given for every burial. Any other dead letter has used up its attempts.
pub const BURIED: &str = "no use";

/// A queue from which messages are taken: at most once.
pub const ONCE: &str = "once";
/// A queue with priorities, whose messages are leased by consumers and by SQL clients: at least
/// once.
pub const LEAST: &str = "least";
/// A queue whose messages are taken or acknowledged in transactions that also write to a ledger:
/// exactly once.
pub const EXACT: &str = "exact";
/// A queue for a worker: at least once.
pub const WORKS: &str = "works";
/// A queue with many producers and one consumer with one task, to check the order.
pub const FIFO: &str = "fifo";
/// A queue with infrequent messages, and one consumer that only listens.
pub const BELL: &str = "bell";
/// A queue that is purged from time to time.
pub const PURGED: &str = "purged";
/// A queue with priorities, and one consumer with one task. The consumer lets a backlog grow from
/// time to time.
pub const RANKED: &str = "ranked";
/// A queue with a limit on leased messages, which several processes reach together.
pub const CAPPED: &str = "capped";
/// A queue with a limit on messages per second, which several processes reach together.
pub const METERED: &str = "metered";
/// A queue with keys and partitions, for workers and for clients of the SQL functions.
pub const KEYED: &str = "keyed";
/// A queue with unique keys, for which enqueues compete.
pub const UNIQUE: &str = "unique";

/// A queue that receives only ticks of schedules, and has no consumer.
pub const TICKS: &str = "ticks";
/// The number of schedules. Each schedule ticks every second.
pub const SCHEDULES: usize = 40;

/// Returns the name of a schedule.
pub fn schedule(nr: usize) -> String {
    format!("schedule.{nr}")
}

pub const PRIORITIES: u32 = 3;
/// The aging of each step of priority in [`RANKED`]. In a backlog, the oldest message of the lowest
/// priority comes before the newest message of the highest priority.
pub const AGING: Duration = Duration::from_millis(400);
/// The maximum number of leased messages of [`CAPPED`].
pub const MAX_LEASED: u32 = 6;
/// The rate of [`METERED`], which is somewhat lower than the rate of its enqueues.
pub const PER_SECOND: f64 = 40.0;
/// The burst of [`METERED`].
pub const BURST: u32 = 10;

/// The number of keys of [`KEYED`].
pub const KEYS: u64 = 12;
/// The number of partitions of [`KEYED`]. It is smaller than the number of keys, so that keys share
/// partitions.
pub const LANES: u32 = 8;
/// The maximum number of partitions that an alteration gives to the queue.
pub const MOST_LANES: u32 = 64;
/// The time for which a partition is held after a read.
pub const HOLD: Duration = Duration::from_secs(3);
/// The number of keys of [`UNIQUE`].
pub const UNIQUE_KEYS: u64 = 16;

pub const QUEUES: [&str; 12] = [ONCE, LEAST, EXACT, WORKS, FIFO, BELL, PURGED, RANKED, CAPPED, METERED, KEYED, UNIQUE];

/// The tables of effects: an entry for each message, and sums.
pub const LEDGER: &str = "
    create table ledger (tag bigint not null, amount bigint not null, op text not null);
    create table account (nr int primary key, sum bigint not null default 0, entries bigint not null default 0);
    insert into account (nr) select generate_series(0, 15);";
/// Locks accounts in the order of their numbers, so that two transactions cannot deadlock.
pub const ENTER: &str = "insert into ledger (tag, amount, op) select e.tag, e.amount, $3 from unnest($1::bigint[], $2::bigint[]) e(tag, amount)";
pub const ADD: &str = "
    with sums as materialized (
        select e.nr, sum(e.amount) as sum, count(*) as entries from unnest($1::int[], $2::bigint[]) e(nr, amount) group by e.nr
    ), held as materialized (
        select a.nr from account a where a.nr in (select s.nr from sums s) order by a.nr for update)
    update account a set sum = a.sum + s.sum, entries = a.entries + s.entries from sums s, held h where a.nr = s.nr and h.nr = s.nr";
