//! Lists the defects.

use crate::faults::Fault;

#[derive(Debug, Clone, Copy)]
pub enum Defect {
    /// A defect in a queue's function: the name of the template, and the texts to replace in it.
    Sql(&'static str, &'static [(&'static str, &'static str)]),
    /// The same defect in several of a queue's functions. If only one function had the defect, the
    /// others would hide it.
    Several(&'static [(&'static str, &'static [(&'static str, &'static str)])]),
    /// A defect in a function that all queues share.
    Shared(&'static str, &'static [(&'static str, &'static str)]),
    /// A defect in the library, behind `cfg(trunkline_mutant)` and the mutant's name.
    Rust,
}

#[derive(Debug, Clone, Copy)]
pub struct Mutant {
    pub name: &'static str,
    pub defect: Defect,
    /// The rules that have to find the defect.
    pub breaks: &'static [&'static str],
    pub faults: &'static [Fault],
    pub minutes: f64,
    pub seed: u64,
}

pub static MUTANTS: [Mutant; 24] = [
    Mutant {
        name: "no-attempt-in-the-fence",
        defect: Defect::Sql(
            "ack",
            &[
                ("q.attempt = d.attempt and q.attempt > 0 and q.error is null", "q.error is null"),
                ("q.attempt = attempts[1] and q.attempt > 0 and q.error is null", "q.error is null"),
                ("returning q.id, q.size, q.attempt;", "returning q.id, q.size, attempts[1];"),
            ],
        ),
        breaks: &["a message came again that was acknowledged"],
        faults: &[],
        minutes: 0.5,
        seed: 1,
    },
    Mutant {
        name: "floor-does-not-wait",
        // The function behaves as if no transaction were older than the candidate.
        defect: Defect::Sql("look", &[("pg_snapshot_xmin(s)::text::bigint,\n", "9223372036854775807,\n")]),
        breaks: &[
            "a message was hidden from dequeues for longer than the floor promises",
            "a message overtook another that was due before it and visible",
        ],
        faults: &[],
        minutes: 0.7,
        seed: 2,
    },
    Mutant {
        name: "notifies-before-commit",
        defect: Defect::Rust,
        breaks: &["a consumer that listens slept over a message"],
        faults: &[],
        minutes: 1.0,
        seed: 3,
    },
    Mutant {
        name: "split-forgets-a-row",
        defect: Defect::Sql(
            "split",
            &[(
                "r.id := row_id + start;",
                "r.id := row_id + start;\n            if stop = whole_size and whole_size > 7 then\n                exit;\n            end if;",
            )],
        ),
        breaks: &["a message vanished whose enqueue was Ok", "an exactly-once effect is missing"],
        faults: &[],
        minutes: 0.5,
        seed: 4,
    },
    Mutant {
        name: "acks-half-a-range",
        defect: Defect::Sql(
            "ack",
            &[
                (
                    "where q.id >= d.id and q.id < d.id + d.size",
                    "where q.id >= d.id and q.id < d.id + (d.size + 1) / 2",
                ),
                (
                    "return query select * from unnest(met.ids, met.sizes, met.attempts);",
                    "return query select * from unnest(ids, sizes, attempts); return;",
                ),
            ],
        ),
        breaks: &[
            "a message came again that was acknowledged",
            "a message is there that was acknowledged, taken or archived",
        ],
        faults: &[],
        minutes: 0.5,
        seed: 5,
    },
    Mutant {
        name: "charges-at-the-end",
        defect: Defect::Sql("lease", &[("attempt = q.attempt + 1", "attempt = greatest(q.attempt, 1)")]),
        breaks: &["one lease was given twice"],
        faults: &[Fault::Kill, Fault::Stop],
        minutes: 0.5,
        seed: 6,
    },
    Mutant {
        name: "release-reuses-a-number",
        defect: Defect::Sql("release", &[("released = q.released + 1", "attempt = q.attempt - 1")]),
        breaks: &["one lease was given twice"],
        faults: &[],
        minutes: 0.5,
        seed: 7,
    },
    Mutant {
        name: "give-back-drops",
        defect: Defect::Sql(
            "back",
            &[("    if named is null then", "    if attempt < 2 then\n        return;\n    elsif named is null then")],
        ),
        breaks: &["a message vanished whose enqueue was Ok"],
        faults: &[],
        minutes: 0.5,
        seed: 8,
    },
    Mutant {
        name: "unknown-as-failed",
        defect: Defect::Rust,
        breaks: &[
            "an enqueue was said to have failed, and its message is there",
            "a message vanished whose enqueue was Ok",
            "an effect is there whose transaction was rolled back",
        ],
        faults: &[Fault::Cut, Fault::Crash, Fault::Terminate],
        minutes: 1.0,
        seed: 9,
    },
    Mutant {
        name: "replay-reuses-numbers",
        defect: Defect::Shared("replay_some", &[("b.attempt + b.released, b.attempt + b.released, 1", "0, 0, 1")]),
        breaks: &["one lease was given twice"],
        faults: &[],
        minutes: 0.7,
        seed: 10,
    },
    Mutant {
        name: "deals-twice",
        defect: Defect::Rust,
        breaks: &["one lease was given twice", "a message that was taken came again"],
        faults: &[],
        minutes: 0.5,
        seed: 11,
    },
    Mutant {
        name: "lease-keeps-the-due-time",
        defect: Defect::Sql("lease", &[("set due_at = trunkline.clock() + term,", "set due_at = q.due_at,")]),
        breaks: &["a message was leased again while its lease ran", "the end of a lease was refused while it ran"],
        faults: &[],
        minutes: 0.5,
        seed: 12,
    },
    Mutant {
        name: "claims-without-the-lock",
        defect: Defect::Shared("claim_schedules", &[(" for update skip locked", "")]),
        breaks: &["a tick of a schedule was made twice"],
        faults: &[],
        minutes: 0.5,
        seed: 13,
    },
    Mutant {
        name: "leaves-ticks-out",
        // If no process could make ticks for a while, the library makes only the last of the missed
        // ticks.
        defect: Defect::Rust,
        breaks: &["a tick of a schedule was left out"],
        faults: &[Fault::Crash, Fault::Silence],
        minutes: 0.5,
        seed: 14,
    },
    Mutant {
        name: "counts-without-the-bucket",
        // Two processes count the leased messages at the same time, and then both lease.
        defect: Defect::Sql("allowed", &[("if locks and not trunkline.{do_bucket_}() then", "if false then")]),
        breaks: &["more messages were leased than the limit allows"],
        faults: &[],
        minutes: 0.5,
        seed: 15,
    },
    Mutant {
        name: "fills-the-bucket-twice",
        // Half of the time since the last dequeue also counts for the next one.
        defect: Defect::Sql("used", &[("filled_at = clock", "filled_at = b.filled_at + (clock - b.filled_at) / 2")]),
        breaks: &["more messages were dequeued in a time than the limit allows"],
        faults: &[],
        minutes: 0.5,
        seed: 16,
    },
    Mutant {
        name: "takes-in-a-pause",
        // The pause is ignored, but only in a caller's transaction, which does not split rows.
        defect: Defect::Sql("gather", &[("if {paused} then", "if {paused} and cut then")]),
        breaks: &["a message was given out while its queue was paused"],
        faults: &[],
        minutes: 1.0,
        seed: 17,
    },
    Mutant {
        name: "starves-the-lowest",
        // Every message of a higher priority comes first, no matter how old the other messages are.
        defect: Defect::Sql(
            "turn",
            &[("head_start constant interval := {head_start};", "head_start constant interval := interval '1 day';")],
        ),
        breaks: &["a message overtook another that was due before it and visible"],
        faults: &[],
        minutes: 0.5,
        seed: 18,
    },
    Mutant {
        name: "one-floor-for-all-lanes",
        // All priorities share the floor of the priority that is served first.
        defect: Defect::Rust,
        breaks: &[
            "a message was hidden from dequeues for longer than the floor promises",
            "a message overtook another that was due before it and visible",
        ],
        faults: &[],
        minutes: 0.7,
        seed: 19,
    },
    Mutant {
        name: "compacts-without-the-lock",
        // Rows that are committed between the copy and the truncate are lost.
        defect: Defect::Shared(
            "rewrite",
            &[("execute format('lock table only %s in access exclusive mode', main);", "perform 1;")],
        ),
        breaks: &["a message vanished whose enqueue was Ok", "a message came again that was acknowledged"],
        faults: &[Fault::Compact],
        minutes: 0.7,
        seed: 20,
    },
    Mutant {
        name: "compaction-forgets-a-row",
        defect: Defect::Shared(
            "rewrite",
            &[("from only %1$s q limit $1)", "from only %1$s q order by q.id offset 1 limit $1)")],
        ),
        breaks: &["a message vanished whose enqueue was Ok"],
        faults: &[Fault::Compact],
        minutes: 0.5,
        seed: 21,
    },
    Mutant {
        name: "compaction-takes-attempts-back",
        defect: Defect::Shared(
            "rewrite",
            &[(
                "get diagnostics count = row_count;",
                "get diagnostics count = row_count;
    if exists (select from pg_attribute where attrelid = main and attname = 'attempt') then
        execute format('update %s set attempt = greatest(attempt - 1, 0)', main);
    end if;",
            )],
        ),
        breaks: &["one lease was given twice", "the end of a lease was refused while it ran"],
        faults: &[Fault::Compact],
        minutes: 0.5,
        seed: 22,
    },
    Mutant {
        name: "makes-no-ticks",
        // The function finds no schedule that is due.
        defect: Defect::Shared("claim_schedules", &[("where not s.paused and", "where s.paused and")]),
        breaks: &["a schedule did not tick until the end of the run"],
        faults: &[],
        minutes: 0.7,
        seed: 30,
    },
    Mutant {
        name: "archives-nothing",
        // Each call fails, so its messages are delivered again.
        defect: Defect::Sql(
            "archive",
            &[("begin\n    for pass in 1..3 loop", "begin\n    raise 'no archive';\n    for pass in 1..3 loop")],
        ),
        breaks: &["a kind of call never succeeded"],
        faults: &[],
        minutes: 0.5,
        seed: 31,
    },
];
