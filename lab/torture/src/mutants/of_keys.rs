//! Lists the defects of keys, partitions and unique keys.

use super::list::{Defect, Mutant};
use crate::faults::Fault;

const OVERTOOK: &str = "a message of a key began before one ahead of it was done";
const TOGETHER: &str = "two messages of a key were handled at the same time";
const TWO: &str = "two messages with one unique key were there at the same time";

pub static OF_KEYS: [Mutant; 7] = [
    Mutant {
        name: "takes-lanes-of-others",
        // The function behaves as if no worker held a partition.
        defect: Defect::Sql(
            "lanes",
            &[
                (
                    "where h.lane >= 0 and h.held_until <= clock\n",
                    "where h.lane >= 0 and h.holder is distinct from holder\n",
                ),
                ("h.lane = l.lane and h.held_until <= clock for update", "h.lane = l.lane for update"),
            ],
        ),
        breaks: &[OVERTOOK, TOGETHER],
        faults: &[],
        minutes: 0.5,
        seed: 20,
    },
    Mutant {
        name: "keeps-leases-not-lanes",
        // Leases are renewed, but the hold on the partition is not.
        defect: Defect::Sql("keep", &[("set held_until = clock + lease * 1.5", "set held_until = h.held_until")]),
        breaks: &[OVERTOOK, TOGETHER],
        faults: &[],
        minutes: 1.0,
        seed: 21,
    },
    Mutant {
        name: "place-follows-the-due-time",
        defect: Defect::Sql("part", &[("set line = q.keys[1] where", "set line = q.keys[1], place = q.due_at where")]),
        breaks: &[OVERTOOK],
        faults: &[],
        minutes: 0.5,
        seed: 24,
    },
    Mutant {
        name: "frees-lanes-as-there-are-more",
        // A new partition has no holder, although the holder of the partition that was split
        // continues its work.
        defect: Defect::Shared(
            "more_lanes",
            &[("select $1 + n, h.holder, h.held_until,", "select $1 + n, h.holder, ''-infinity'',")],
        ),
        breaks: &[OVERTOOK, TOGETHER],
        faults: &[Fault::Alter],
        minutes: 1.0,
        seed: 29,
    },
    Mutant {
        name: "dead-letters-keep-keys",
        // Usually a claim whose message no longer exists counts as free. The second replacement
        // makes such a claim count.
        defect: Defect::Several(&[
            (
                "free",
                &[(
                    "and h.until is null offset 0",
                    "and h.until is null and not exists (select from trunkline.{dead_} d where d.id = h.id) offset 0",
                )],
            ),
            (
                "unique",
                &[(
                    "coalesce(c.until <= since, not exists (",
                    "coalesce(c.until <= since, not exists (select from trunkline.{dead_} d where d.id = c.id) and not exists (",
                )],
            ),
        ]),
        breaks: &["a unique key was kept although its message had ended"],
        faults: &[],
        minutes: 0.5,
        seed: 26,
    },
    Mutant {
        name: "retry-frees-the-key",
        defect: Defect::Sql(
            "retry",
            &[(
                "        if {keyed} and (select q.per_key = 1 from trunkline.queue q where q.name = {literal}) then",
                "        if to_regclass('trunkline.{unique_}') is not null then
            execute 'delete from trunkline.{unique_} u where u.id = any ($1)' using met.ids;
        end if;
        if {keyed} and (select q.per_key = 1 from trunkline.queue q where q.name = {literal}) then",
            )],
        ),
        breaks: &[TWO],
        faults: &[],
        minutes: 0.5,
        seed: 27,
    },
    Mutant {
        name: "loses-a-race-and-stays",
        // A call that finds a key claimed by another call does not undo its own enqueue.
        defect: Defect::Sql("unique", &[("if claimed < wanted then", "if false then")]),
        breaks: &[TWO],
        faults: &[],
        minutes: 0.5,
        seed: 28,
    },
];
