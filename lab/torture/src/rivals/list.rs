//! Lists the rivals: how to start and read each of them, and the promises that it does not make.

use super::{
    excuses::{self, Excuse},
    rules::RivalRule,
};

/// The name of Trunkline itself, which takes part through the same protocol.
pub const OWN: &str = "trunkline";

/// The language of a peer's program, which determines how it is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Not a peer, but a part of this program.
    Own,
    Rust,
    Go,
    Node,
    Python,
}

#[derive(Debug)]
pub struct Rival {
    /// The rival's name, which is also the name of its folder in `lab/peers`.
    pub name: &'static str,
    pub language: Language,
    /// The duration of a lease that is not renewed.
    pub lease_ms: u64,
    /// The minimum time for which a fault stops a process. It is long enough for the process's
    /// messages to be given to another process.
    pub stop_ms: u64,
    /// The time to drain the queues at the end, including leases that must expire.
    pub drain_secs: u64,
    /// SQL that the server's superuser runs once after the installation.
    pub prepare: &'static str,
    /// SQL that the server's superuser runs twice a second.
    pub tick: &'static str,
    /// A query for the rival's messages: queue, id, payload, state (`waiting`, `dead` or `done`),
    /// attempt, and completion time in microseconds, if that is known.
    pub left: &'static str,
    /// The promises that the rival does not make, or has no verb for, with their sources.
    pub excuses: &'static [(RivalRule, Excuse)],
}

impl Rival {
    pub fn excuse(&self, rule: RivalRule) -> Option<Excuse> {
        self.excuses.iter().find(|(other, _)| *other == rule).map(|(_, excuse)| *excuse)
    }
}

pub fn find(name: &str) -> Result<&'static Rival, String> {
    RIVALS.iter().find(|rival| rival.name == name).ok_or_else(|| {
        let names: Vec<&str> = RIVALS.iter().map(|rival| rival.name).collect();
        format!("there is no rival {name:?}; there are {}", names.join(", "))
    })
}

pub static RIVALS: [Rival; 7] = [
    Rival {
        name: OWN,
        language: Language::Own,
        lease_ms: 2_000,
        stop_ms: 2_500,
        drain_secs: 60,
        prepare: "",
        tick: "",
        left: "
            select 'work', id, payload, 'waiting', attempt, null::float8 from trunkline.messages('work')
            union all select 'exact', id, payload, 'waiting', attempt, null from trunkline.messages('exact')
            union all select 'work', id, payload, 'dead', attempt, null from trunkline.dead_work
            union all select 'exact', id, payload, 'dead', attempt, null from trunkline.dead_exact",
        excuses: &[],
    },
    Rival {
        name: "pgmq",
        language: Language::Rust,
        lease_ms: 2_000,
        stop_ms: 2_500,
        drain_secs: 60,
        prepare: "",
        tick: "",
        left: "
            select 'work', msg_id, message ->> 'text', 'waiting', read_ct, null::float8 from pgmq.q_work
            union all select 'exact', msg_id, message ->> 'text', 'waiting', read_ct, null from pgmq.q_exact
            union all select 'work', msg_id, message ->> 'text', 'dead', read_ct, null from pgmq.a_work",
        excuses: excuses::PGMQ,
    },
    Rival {
        name: "river",
        language: Language::Go,
        lease_ms: 20_000,
        // river's rescuer gives stuck jobs to other processes. It looks for stuck jobs every 30 s,
        // and after each leader election.
        stop_ms: 29_000,
        drain_secs: 120,
        prepare: "",
        tick: "",
        left: "
            select queue, id, args ->> 'text',
                   case when state = 'completed' then 'done' when state in ('discarded', 'cancelled') then 'dead' else 'waiting' end,
                   attempt::int, (extract(epoch from finalized_at) * 1e6)::float8
            from river_job",
        excuses: excuses::RIVER,
    },
    Rival {
        name: "graphile-worker",
        language: Language::Node,
        lease_ms: 3_000,
        stop_ms: 4_000,
        drain_secs: 60,
        // graphile-worker deletes completed rows; this table keeps their completion times.
        prepare: "
            create table ended (id bigint not null, at timestamptz not null);
            create function ended() returns trigger language plpgsql security definer as
                $$begin insert into public.ended values (old.id, clock_timestamp()); return null; end$$;
            create trigger ended after delete on graphile_worker._private_jobs for each row execute function ended();",
        // The pauses between attempts grow to minutes, and cannot be configured. A message in such
        // a pause counts as kept, and the drain does not wait for it. The lock timeout is reduced
        // from four hours to three seconds.
        tick: "
            update graphile_worker._private_jobs set locked_at = locked_at - interval '4 hours'
            where locked_at between now() - interval '4 hours' and now() - interval '3 seconds'",
        left: "
            select 'work', id, payload ->> 'text',
                   case when locked_at is null and (run_at > now() or attempts >= max_attempts) then 'dead' else 'waiting' end,
                   attempts::int, null::float8
            from graphile_worker._private_jobs
            union all select 'work', id, null, 'done', 0, extract(epoch from at) * 1e6 from ended",
        excuses: excuses::GRAPHILE,
    },
    Rival {
        // In a transaction, `completed_on` is the start time of the transaction, so the time of the
        // end is unknown.
        name: "pg-boss",
        language: Language::Node,
        lease_ms: 3_000,
        stop_ms: 4_500,
        drain_secs: 60,
        prepare: "",
        tick: "",
        left: "
            select name, ('x' || left(replace(id::text, '-', ''), 13))::bit(52)::bigint, data ->> 'text',
                   case state::text when 'completed' then 'done' when 'failed' then 'dead' when 'cancelled' then 'dead' else 'waiting' end,
                   retry_count + 1, case name when 'work' then (extract(epoch from completed_on) * 1e6)::float8 end
            from pgboss.job where name in ('work', 'exact')",
        excuses: &[],
    },
    Rival {
        name: "pgqueuer",
        language: Language::Python,
        lease_ms: 3_000,
        stop_ms: 4_000,
        drain_secs: 90,
        prepare: "",
        tick: "",
        left: "
            select 'work', id::bigint, convert_from(payload, 'utf8'), case when status::text = 'failed' then 'dead' else 'waiting' end,
                   attempts, null::float8
            from pgqueuer
            union all
            select 'work', job_id, null, 'done', 0, (extract(epoch from created) * 1e6)::float8
            from pgqueuer_log where status::text = 'successful'",
        excuses: excuses::PGQUEUER,
    },
    Rival {
        name: "awa",
        language: Language::Python,
        lease_ms: 10_000,
        // awa gives a claimed job to another process after about twenty seconds.
        stop_ms: 22_000,
        drain_secs: 90,
        // awa soon removes completed jobs together with their partition; this table keeps their
        // completion times.
        prepare: "create table ended (id bigint primary key, at timestamptz not null)",
        tick: "
            insert into ended select id, finalized_at from awa.jobs where queue = 'work' and state::text = 'completed' on conflict do nothing",
        left: "
            select queue, id, args ->> 'text',
                   case when state::text in ('failed', 'cancelled') or state::text = 'retryable' and run_at > now() then 'dead' else 'waiting' end,
                   attempt::int, null::float8
            from awa.jobs where queue = 'work' and state::text <> 'completed'
            union all select 'work', id, null, 'done', 0, (extract(epoch from at) * 1e6)::float8 from ended",
        excuses: excuses::AWA,
    },
];
