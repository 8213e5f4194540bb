//! Trunkline's own layers as contenders. The command line is one of `layers statements`,
//! `layers sql`, `layers queue [take | bytea]`, `layers coalesced [bytea]`, `layers hand-over`,
//! `layers worker [bytea]`, `layers keys [4]`, `layers priorities`, `layers unique`,
//! `layers sharded [jobs | round-robin]`, `layers processes PROGRAM`,
//! `layers caller library | insert | insert-and-notify`.

mod statements;
mod sql;
mod payload;
mod open;
mod consume;
mod ledger;
mod queue;
mod seed;
mod coalesced;
mod direct;
mod worker;
mod sharded;
mod drafted;
mod keyed;
mod processes;

use std::process::ExitCode;

use trunkline_contender::{Measure, run, run_processes};

use crate::{
    coalesced::Coalesced,
    direct::HandOver,
    drafted::{Drafted, Priorities, Unique},
    keyed::Keyed,
    payload::{Bytes, Document},
    processes::{Library, Plain, Processes},
    queue::Queue,
    sharded::OnShards,
    sql::Sql,
    statements::Statements,
    worker::Worker,
};

/// Runs the layer that the command line names.
#[must_use]
pub fn main(measure: Measure) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["statements"] => run::<Statements>(measure),
        ["sql"] => run::<Sql>(measure),
        ["queue"] => run::<Queue<Document>>(measure),
        ["queue", "take"] => run::<Queue<Document, true>>(measure),
        ["queue", "bytea"] => run::<Queue<Bytes>>(measure),
        ["coalesced"] => run::<Coalesced<Document>>(measure),
        ["coalesced", "bytea"] => run::<Coalesced<Bytes>>(measure),
        ["hand-over"] => run::<HandOver<Document>>(measure),
        ["worker"] => run::<Worker<Document>>(measure),
        ["sharded"] => run::<OnShards<Document>>(measure),
        ["sharded", "round-robin"] => run::<OnShards<Document, false, true>>(measure),
        ["sharded", "jobs"] => run::<OnShards<Document, true>>(measure),
        ["keys"] => run::<Keyed<Document, 1>>(measure),
        ["keys", "4"] => run::<Keyed<Document, 4>>(measure),
        ["priorities"] => run::<Drafted<Document, Priorities>>(measure),
        ["unique"] => run::<Drafted<Document, Unique>>(measure),
        ["worker", "bytea"] => run::<Worker<Bytes>>(measure),
        ["processes", ..] => run_processes::<Processes>(words[1..].to_vec()),
        ["caller", "library"] => run::<Library>(measure),
        ["caller", "insert"] => run::<Plain<false>>(measure),
        ["caller", "insert-and-notify"] => run::<Plain<true>>(measure),
        _ => {
            eprintln!(
                "usage: layers statements | sql | queue [take | bytea] | coalesced [bytea] | hand-over | worker [bytea] | keys [4] | priorities | unique | sharded [jobs | round-robin] | processes PROGRAM | caller library | caller insert | caller insert-and-notify"
            );
            ExitCode::FAILURE
        }
    }
}
