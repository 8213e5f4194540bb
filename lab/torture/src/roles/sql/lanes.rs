//! Leases partitions, continues to read them, and releases them, with the SQL functions. The client
//! handles messages one after another.

use std::{collections::HashSet, time::Duration};

use super::{Client, LEASE_MS};
use crate::{
    check::keys::DEAD,
    history::{Call, Got, Micros, Named, Said, Verb, now},
    plan::{self, HOLD},
    tag,
};

/// The time before the end of a lease in which the client begins no message.
const MARGIN: Micros = 300_000;

/// An error after which the client gives up its partition. It does not know which of the
/// partition's messages are still leased.
struct Gone;

impl Client {
    pub(super) async fn lane(&mut self) {
        let n = self.random.within(1, 12) as usize;
        let mut began = now();
        let op = self.user.invoked(Call::new(Verb::Lease, self.name).n(n).ms(LEASE_MS));
        let text = "select id, attempt, payload, metadata ->> 'tag', holder from trunkline.lease_partition($1, $2, $3 * interval '1 ms')";
        let rows = self.session.rows(text, &[&self.name, &(n as i32), &(LEASE_MS as f64)]).await;
        let holder: Option<i64> = rows.as_ref().ok().and_then(|rows| rows.first()).map(|row| row.get(4));
        let mut got: Vec<Got> = rows.as_deref().unwrap_or_default().iter().map(super::delivered).collect();
        self.user.say(op, rows.map_or_else(|said| said, |_| Said::got(got.clone())));
        let Some(holder) = holder else { return };
        let mut over = now() + HOLD.as_micros() as Micros;
        loop {
            if self.handle(&got, began).await.is_err() {
                return;
            }
            match self.random.below(100) {
                0..40 => break,
                40..48 => self.user.rest(HOLD + Duration::from_millis(200)).await,
                _ => {}
            }
            began = now();
            let op = self.user.invoked(Call::new(Verb::Lease, self.name).n(n).ms(LEASE_MS).over(over));
            let text =
                "select id, attempt, payload, metadata ->> 'tag' from trunkline.more($1, $2, $3, $4 * interval '1 ms')";
            let rows = self.session.rows(text, &[&self.name, &holder, &(n as i32), &(LEASE_MS as f64)]).await;
            got = rows.as_deref().unwrap_or_default().iter().map(super::delivered).collect();
            let is_told = rows.is_ok();
            self.user.say(op, rows.map_or_else(|said| said, |_| Said::got(got.clone())));
            if !is_told {
                return;
            }
            over = now() + HOLD.as_micros() as Micros;
            if got.is_empty() {
                break;
            }
        }
        if self.random.chance(80) {
            let op = self.user.invoked(Call::new(Verb::ReleasePartition, self.name));
            let rows = self.session.rows("select trunkline.release_partition($1, $2)", &[&self.name, &holder]).await;
            self.user.say(op, rows.map_or_else(|said| said, |_| Said::ok()));
        }
    }

    /// Handles messages one after another. If a message is not done, gives back the later messages
    /// with the same key.
    async fn handle(&mut self, got: &[Got], began: Micros) -> Result<(), Gone> {
        let mut waiting: HashSet<String> = HashSet::new();
        for (id, attempt, tag) in got {
            let (lease, key) = ((*id, *attempt), tag::key(*tag));
            if now() + MARGIN > began + LEASE_MS * 1000 {
                return Err(Gone); // the lease expires, and the message is delivered again
            }
            if waiting.contains(&key) {
                self.end_one(Verb::Release, "release($1, $2, $3)", lease).await?;
                continue;
            }
            let op = self.user.invoked(Call::new(Verb::Start, self.name).named(vec![lease]).tags(vec![*tag]));
            let pause = Duration::from_millis(self.random.below(6));
            self.user.rest(pause).await;
            match self.random.below(100) {
                0..82 => {
                    self.user.say(op, Said::ok());
                    self.end_one(Verb::Ack, "ack($1, $2, $3)", lease).await?;
                }
                82..92 => {
                    self.user.say(op, Said::Failed("to be tried again".to_owned()));
                    waiting.insert(key);
                    let retry = "retry($1, $2, $3, delay => '200 ms', error => 'it failed')";
                    self.end_one(Verb::Retry, retry, lease).await?;
                }
                92..95 => {
                    self.user.say(op, Said::Failed(DEAD.to_owned()));
                    self.end_one(Verb::Bury, "bury($1, $2, $3, 'no use')", lease).await?;
                }
                95..98 => {
                    // The lease has ended, and another worker may have the partition.
                    self.user.say(op, Said::Failed("too late".to_owned()));
                    self.user.rest(plan::LEASE + Duration::from_millis(1_200)).await;
                    // ignores the result, because the server refuses this late end
                    let _ = self.end_one(Verb::Ack, "ack($1, $2, $3)", lease).await;
                    return Err(Gone);
                }
                _ => {
                    self.user.say(op, Said::Failed("left".to_owned()));
                    return Err(Gone);
                }
            }
        }
        Ok(())
    }

    async fn end_one(&mut self, verb: Verb, call: &str, lease: Named) -> Result<(), Gone> {
        let op = self.user.invoked(Call::new(verb, self.name).named(vec![lease]));
        let ended = self.session.rows(&format!("select trunkline.{call}"), &[&self.name, &lease.0, &lease.1]).await;
        let (said, outcome) = match ended {
            Ok(_) => (Said::ok(), Ok(())),
            Err(Said::Failed(why)) if why.contains("TL001") => {
                (Said::Ok { ids: Vec::new(), got: Vec::new(), lost: vec![lease.0] }, Err(Gone))
            }
            Err(said) => (said, Err(Gone)),
        };
        self.user.say(op, said);
        outcome
    }
}
