//! `trunkline relay` as its users run it, beside real brokers: killed, ended, and waiting for a broker that is away.

#[allow(dead_code, clippy::maybe_infinite_iter, reason = "shared with the relay's own tests")]
#[path = "../../../relay/tests/all/brokers/mod.rs"]
mod brokers;
#[allow(dead_code, reason = "shared with the relay's own tests")]
#[path = "../../../relay/tests/all/ends.rs"]
mod ends;
#[allow(dead_code, reason = "shared with the other tests of the program")]
#[path = "../all/fixture.rs"]
mod fixture;
#[allow(clippy::doc_markdown, reason = "names of brokers")]
#[path = "../../../tests/all/required.rs"]
mod required;
#[path = "../all/watchdog.rs"]
mod watchdog;
mod far;
mod place;
mod killed;
mod ended;
mod away;
