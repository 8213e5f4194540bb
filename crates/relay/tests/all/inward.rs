//! Each message of a broker arrives exactly once, even if a process is killed while it works.

use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use trunkline_embedded::Stop;
use trunkline_relay::{Inward, Outcome, Outgoing, Progress};

use crate::{
    brokers::Kind,
    ends::{Arrived, Sent},
    stand::{Stand, until},
};

struct Running {
    task: JoinHandle<trunkline_relay::Result<Arc<Progress>>>,
    progress: Arc<Progress>,
    stop: CancellationToken,
}

impl Running {
    async fn of(stand: &Stand) -> Self {
        let relay = Inward::new(stand.source().await, stand.queue.clone());
        let (progress, stop) = (relay.progress(), CancellationToken::new());
        let task = tokio::spawn(relay.run(stop.clone().cancelled_owned()));
        Self { task, progress, stop }
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.expect("no panic").expect("a clean end");
    }
}

/// Writes `each` messages of several keys directly to the broker.
async fn send(stand: &Stand, sent: &mut Sent, each: usize) {
    let (sink, _) = stand.sink().await;
    let to = if stand.kind == Kind::Nats { "s.q" } else { "s" };
    for _ in 0..each {
        let bodies: Vec<_> = (0..50).map(|key| sent.next(&format!("k{key}"))).collect();
        let batch: Vec<_> = bodies.iter().map(|body| Outgoing::new(body.clone(), to, body.clone())).collect();
        let outcomes = sink.produce(&batch).await;
        for (body, outcome) in bodies.into_iter().zip(outcomes) {
            if outcome == Outcome::Confirmed { sent.is_in(body) } else { sent.may_be_in(body) }
        }
    }
}

/// Takes all messages of the queue, and returns them in the order in which they were taken.
async fn taken(stand: &Stand) -> Vec<Arrived> {
    let mut all = Vec::new();
    loop {
        let some = stand.queue.take(10_000).await.expect("taken");
        if some.is_empty() {
            all.sort_by_key(|(id, _)| *id);
            return all.into_iter().map(|(_, arrived)| arrived).collect();
        }
        let arrived = |message: trunkline::Message<trunkline_relay::Raw>| {
            let body = String::from_utf8(message.payload.0.to_vec()).expect("text");
            (message.id, Arrived { body, id: None })
        };
        all.extend(some.into_iter().map(arrived));
    }
}

async fn stored(stand: &Stand, messages: u64) {
    until("messages are in the queue", async || {
        stand.queue.stats().await.is_ok_and(|stats| stats.messages >= messages)
    })
    .await;
}

async fn in_through(kind: Kind, trouble: impl AsyncFnOnce(&mut Stand)) {
    let mut stand = Stand::of(kind, 0).await;
    let mut sent = Sent::default();
    send(&stand, &mut sent, 60).await;
    let relay = Running::of(&stand).await;
    until("something came", async || relay.progress.confirmed() > 0).await;
    trouble(&mut stand).await;
    send(&stand, &mut sent, 20).await;
    stored(&stand, sent.sure() as u64).await;
    relay.end().await;
    sent.against(&taken(&stand).await).exactly_once();
}

/// Makes the first transaction fail: the relay has read messages, but has stored no position.
async fn first_store_fails(kind: Kind) {
    let stand = Stand::of(kind, 0).await;
    let fails = "do $$ begin
        create sequence public.tries;
        create function public.fail_once() returns trigger language plpgsql as
            'begin if nextval(''public.tries'') = 1 then raise exception ''once'' using errcode = ''40001''; end if; return new; end';
        create trigger fail_once before insert on trunkline.queue_q for each row execute function public.fail_once();
    end $$";
    stand.db.run(&trunkline::postgres::Statement::<(), ()>::new(fails), ()).await.expect("created");
    let mut sent = Sent::default();
    send(&stand, &mut sent, 60).await;
    let relay = Running::of(&stand).await;
    stored(&stand, sent.sure() as u64).await;
    assert!(relay.progress.again() > 0, "it failed once");
    relay.end().await;
    sent.against(&taken(&stand).await).exactly_once();
}

/// Kills relays at any point, and runs two with the same name at the same time.
async fn relays_killed(kind: Kind) {
    let stand = Stand::of(kind, 0).await;
    let mut sent = Sent::default();
    for _ in 0..4 {
        send(&stand, &mut sent, 20).await;
        let relay = Running::of(&stand).await;
        until("something came", async || relay.progress.confirmed() > 0).await;
        relay.task.abort();
        assert!(relay.task.await.is_err_and(|error| error.is_cancelled()));
        let sql = stand.db.clone();
        // Expires the hold, which has the same effect as a time without reports.
        let late =
            trunkline::postgres::Statement::<(), u64>::new("update trunkline.relay set held_until = '-infinity'");
        sql.run(&late, ()).await.expect("updated");
    }
    let (one, other) = (Running::of(&stand).await, Running::of(&stand).await);
    send(&stand, &mut sent, 20).await;
    stored(&stand, sent.sure() as u64).await;
    one.end().await;
    other.end().await;
    sent.against(&taken(&stand).await).exactly_once();
}

/// Checks that a relay that wrongly counts as dead changes nothing.
async fn fenced(kind: Kind) {
    let stand = Stand::of(kind, 0).await;
    let mut sent = Sent::default();
    let (one, other) = (Running::of(&stand).await, Running::of(&stand).await);
    let late = trunkline::postgres::Statement::<(), u64>::new("update trunkline.relay set held_until = '-infinity'");
    for _ in 0..10 {
        send(&stand, &mut sent, 5).await;
        stand.db.run(&late, ()).await.expect("updated");
        until("it is taken over or moved on", async || {
            stand.queue.stats().await.is_ok_and(|stats| stats.messages >= sent.sure() as u64)
        })
        .await;
    }
    one.end().await;
    other.end().await;
    sent.against(&taken(&stand).await).exactly_once();
}

async fn broker_killed(stand: &mut Stand) {
    stand.broker.kill();
    stand.broker.start_again();
}

async fn postgres_killed(stand: &mut Stand) {
    stand.cluster.restart(Stop::Immediate).expect("it starts again");
}

async fn network_cut(stand: &mut Stand) {
    stand.proxy.cut_answers_after(Some(300));
    let proxy = stand.proxy.clone();
    until("an answer is cut", async || !proxy.is_cut_ahead()).await;
}

macro_rules! of_each {
    ($($kind:ident $feature:literal $which:expr, $needs:literal;)*) => { $(
        #[cfg(feature = $feature)]
        mod $kind {
            use super::*;

            #[tokio::test(flavor = "multi_thread")]
            #[ignore = $needs]
            async fn each_arrives_once_where_the_broker_is_killed() {
                in_through($which, broker_killed).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            #[ignore = $needs]
            async fn each_arrives_once_where_postgres_is_killed() {
                in_through($which, postgres_killed).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            #[ignore = $needs]
            async fn each_arrives_once_where_the_network_is_cut() {
                in_through($which, network_cut).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            #[ignore = $needs]
            async fn each_arrives_once_where_relays_are_killed() {
                relays_killed($which).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            #[ignore = $needs]
            async fn one_that_was_taken_for_dead_changes_nothing() {
                fenced($which).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            #[ignore = $needs]
            async fn each_arrives_once_where_the_first_store_fails() {
                first_store_fails($which).await;
            }
        }
    )* };
}

of_each! {
    nats "nats" Kind::Nats, "needs NATS: see .ci/brokers";
    redis "redis" Kind::Redis, "needs Redis: see .ci/brokers";
}
