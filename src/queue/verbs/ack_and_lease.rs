//! Acknowledges messages and leases others in one transaction, which concurrent calls share.

use std::{slice, sync::Arc};

use tokio::{sync::oneshot, time::Instant};
use tokio_postgres::types::ToSql;
use tracing::{Instrument, Span, warn};

use crate::{
    error::{Error, OneByOne, Result},
    postgres::{db::Class, sql::Sql},
    queue::{
        batch::{
            ack_and_lease::{AckAndLease, AckAndLeasePermit, CALL},
            batcher::run_or_detach,
            dequeues::{Batches, DequeueMode, PAGE},
            notify::may_have_committed,
            settle::Lost,
        },
        handle::Shared,
        message::{Lease, Ranges, Settled, payload::Payload},
        observe::{metric::End, span},
        verbs::dequeue::{Dequeued, most_rows},
        wait::linger::Linger,
    },
};

impl Shared {
    /// Ends the leases `done`, which are sorted and distinct, and leases up to `n` messages.
    /// Returns the leased messages, and the ids of the messages in `done` whose lease was lost. If
    /// `linger` is set, first waits for the next notification, but for at most 2 ms.
    pub async fn ack_and_lease<T: Payload>(
        self: &Arc<Self>,
        done: Vec<Lease>,
        (n, how): (usize, DequeueMode),
        linger: Option<Linger>,
    ) -> Result<(Dequeued<T>, Vec<i64>)> {
        self.put_back_unclaimed();
        let (answer, answered) = oneshot::channel();
        let call =
            AckAndLease { done, n: self.fitting(n), most: self.fitting(PAGE), how, caller: Span::current(), answer };
        match linger {
            // In a separate task, so that the messages are acknowledged even if the caller leaves.
            Some(linger) => {
                let shared = self.clone();
                tokio::spawn(async move {
                    linger.over().await;
                    shared.start(call);
                });
            }
            None => self.start(call),
        }
        let (page, lost) = answered.await.unwrap_or_else(|_| Err(Error::ended(CALL, true)))?;
        let size = page.size;
        Ok((self.open(vec![page], size)?, lost))
    }

    fn start(self: &Arc<Self>, call: AckAndLease) {
        if let DequeueMode::Lanes(..) = call.how {
            // Only this worker has these partitions, so no other call can share the transaction.
            tokio::spawn(run(self.clone(), vec![call]));
        } else if let Some(permit) = self.batchers.ack_and_lease.join(|calls| calls.add(call)) {
            tokio::spawn(run_all(self.clone(), permit));
        }
    }

    /// Acknowledges and leases for all calls, in one transaction.
    async fn ack_and_lease_now(self: &Arc<Self>, calls: &[AckAndLease]) -> Result<(Batches, Lost)> {
        let (how, n) = (calls[0].how, calls.iter().map(|call| call.n).sum::<usize>());
        let ranges = match calls {
            [call] => Ranges::of(&call.done, |_, _| true),
            calls => {
                let mut done: Vec<Lease> = calls.iter().flat_map(|call| call.done.iter().copied()).collect();
                done.sort_unstable();
                Ranges::of(&done, |_, _| true)
            }
        };
        let acknowledged = ranges.messages();
        let settle = calls[0].caller.in_scope(|| span::settle(self.name(), End::Done.name(), acknowledged));
        let span = settle.in_scope(|| span::lease(self.name(), n));
        let noted = span.clone();
        let outcome = async {
            let (began, asked) = (Instant::now(), n as i32);
            let (floor, rows) = (self.floor(), self.rows_for(n));
            let ack: [&(dyn ToSql + Sync); 3] = [&ranges.ids, &ranges.sizes, &ranges.attempts];
            let (sql, lease): (_, [&(dyn ToSql + Sync); 4]) = match &how {
                DequeueMode::Lanes(holder, time) => (&self.sql.lanes, [&asked, time, holder, &floor]),
                DequeueMode::Take => (&self.sql.take, [&asked, &floor, &rows, &true]),
                DequeueMode::Lease(time) => (&self.sql.lease, [&asked, time, &floor, &rows]),
                DequeueMode::LeaseTogether(time) => (&self.sql.lease_together, [&asked, time, &floor, &rows]),
            };
            let both: [(&Sql, &[&(dyn ToSql + Sync)]); 2] = [(&self.sql.ack, &ack), (sql, &lease)];
            let most = Some(acknowledged + most_rows(asked));
            let mut answers = self.db.query_together(Class::Main, &both, most).await?;
            let (leased, ended) = (answers.pop().unwrap_or_default(), answers.pop().unwrap_or_default());
            // Wraps the leased rows first, so that they are put back if the rest of the reply
            // cannot be read.
            let leased = self.dequeued(leased, how, began, &noted);
            let ended = ended.iter().map(Settled::of).collect::<Result<Vec<_>>>()?;
            let lost = acknowledged.saturating_sub(Settled::messages(ended.iter().copied()));
            self.metrics.settled(End::Done, acknowledged, lost, began.into_std());
            Ok((leased, Lost::of(acknowledged, ended)))
        };
        let outcome: Result<_> = outcome.instrument(span).instrument(settle).await;
        outcome.map_err(|error| error.or_no_queue(self.name()))
    }
}

/// Runs transactions for waiting calls, one after another.
async fn run_all(shared: Arc<Shared>, mut permit: AckAndLeasePermit) {
    while let Some(calls) = permit.next() {
        let answered = calls.len();
        run_or_detach(run(shared.clone(), calls)).await;
        permit.give_way(answered).await;
    }
}

/// Runs one transaction, and answers its calls. If the server refuses a shared transaction, each
/// call gets its own, so that no call fails because of another.
async fn run(shared: Arc<Shared>, calls: Vec<AckAndLease>) {
    match shared.ack_and_lease_now(&calls).await {
        Err(error) if calls.len() > 1 && error.is_refusal() => {
            let mut search = OneByOne::default();
            for call in calls {
                let outcome = search.send(shared.ack_and_lease_now(slice::from_ref(&call)), None).await;
                answer(&shared, vec![call], outcome).await;
            }
        }
        outcome => answer(&shared, calls, outcome).await,
    }
}

async fn answer(shared: &Arc<Shared>, mut calls: Vec<AckAndLease>, outcome: Result<(Batches, Lost)>) {
    if may_have_committed(&outcome) {
        shared.make_room();
    }
    let (mut page, lost) = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            for call in calls {
                let _ = call.answer.send(Err(error.clone())); // the caller may have stopped waiting
            }
            return;
        }
    };
    loop {
        // One call gets a message that was returned apart; others may be due for the other calls.
        let served = if page.is_apart() { calls.iter().position(|call| call.n > 0) } else { None };
        let others = served.map(|served| calls.split_off(served + 1)).unwrap_or_default();
        let asks: Vec<usize> = calls.iter().map(|call| call.n).collect();
        for (call, part) in calls.into_iter().zip(page.distribute(&asks)) {
            let lost = lost.among(&call.done);
            let _ = call.answer.send(Ok((part, lost))); // if the caller has left, the drop puts the messages back
        }
        let Some(how) = others.first().map(|call| call.how) else { return };
        page = match others.iter().map(|call| call.n).sum() {
            0 => Ok(Batches::of(Vec::new(), how, Instant::now(), shared.clone())),
            n => shared.dequeue_now(n, how).await,
        }
        .unwrap_or_else(|error| {
            warn!(queue = shared.name(), %error, "messages were acknowledged, but no others could be leased");
            Batches::of(Vec::new(), how, Instant::now(), shared.clone())
        });
        calls = others;
    }
}
