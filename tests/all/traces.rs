//! A trace continues from message to message.

use std::{collections::BTreeSet, convert::Infallible, time::Duration};

use tokio::sync::mpsc;
use trunkline::{Draft, Message, Metadata, Settings, TraceContext, Wait, Worker};

use crate::fixture::{Place, Runs, drafts, drained, eventually, place};

const NOW: Duration = Duration::ZERO;
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn context() -> TraceContext {
    TraceContext::parse(PARENT, Some("congo=t61rcWkgMzE")).expect("valid")
}

/// Returns the contexts of messages that continue the trace, each with a new span.
fn continued(messages: &[Message<i64>]) -> Vec<TraceContext> {
    let of = |message: &Message<i64>| TraceContext::of(&message.metadata).expect("it is in a trace");
    let contexts: Vec<TraceContext> = messages.iter().map(of).collect();
    for found in &contexts {
        assert_eq!((found.trace_id(), found.tracestate()), (context().trace_id(), Some("congo=t61rcWkgMzE")));
        assert!(found.is_sampled() && found.span_id() != context().span_id());
    }
    contexts
}

#[tokio::test(flavor = "multi_thread")]
async fn every_enqueue_within_a_scope_continues_its_trace() {
    let Place { queue, db, mut sql, .. } = place::<i64>(Settings::new("int8")).await;
    let work = async {
        queue.enqueue(1).await.expect("enqueued");
        queue.enqueue(Draft::new(2).after(NOW)).await.expect("enqueued");
        queue.enqueue(Draft::new(3).with("tenant", "acme")).await.expect("enqueued");
        queue.enqueue_many(&[4, 5]).await.expect("enqueued");
        queue.enqueue_many(drafts(&[(6, Metadata::new())])).await.expect("enqueued");
        let theirs = sql.transaction().await.expect("begun");
        queue.enqueue_in(&theirs, 7).await.expect("enqueued");
        theirs.commit().await.expect("committed");
        let ours = db.begin().await.expect("begun");
        queue.enqueue_many_in(&ours, &[8]).await.expect("enqueued");
        let sent = queue.send_enqueue_many(&ours, &[9]).await.expect("sent");
        ours.commit().await.expect("committed");
        sent.await.expect("enqueued");
        queue.send_direct(10).await.expect("enqueued, because no consumer waits");
        assert_eq!(TraceContext::current(), Some(context()));
    };
    context().scope(work).await;
    assert_eq!(TraceContext::current(), None);
    let got = queue.take(99).await.expect("taken");
    assert_eq!(got.iter().map(|message| message.payload).collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>());
    let spans: BTreeSet<u64> = continued(&got).iter().map(TraceContext::span_id).collect();
    assert_eq!(spans.len(), 9, "a span for each call");
    assert_eq!(got[2].metadata.get("tenant"), Some("acme"));

    // If metadata already names a trace, the metadata is kept unchanged, even if it is malformed.
    let own = Metadata::new().with("traceparent", "mine");
    context().scope(queue.enqueue(Draft::new(1).metadata(own.clone()))).await.expect("enqueued");
    queue.enqueue(2).await.expect("enqueued");
    let got = queue.take(9).await.expect("taken");
    assert_eq!((&got[0].metadata, &got[1].metadata), (&own, &Metadata::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_handed_over_within_a_scope_continues_the_trace() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    let mut consumer = queue.consumer(Wait::Notify);
    let receiver = tokio::spawn(async move { consumer.receive_direct().await.expect("a message") });
    eventually("the consumer waits", || async {
        sql.query_one("select count(*) from trunkline.waiting", &[]).await.expect("counted").get::<_, i64>(0) == 1
    })
    .await;
    context().scope(queue.send_direct(1)).await.expect("handed over");
    continued(&[receiver.await.expect("no panic")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn follow_up_messages_of_a_worker_are_in_their_traces() {
    let Place { queue, db, .. } = place::<i64>(Settings::new("int8")).await;
    db.create_queue("next", &Settings::new("int8")).await.expect("created");
    let next = db.queue::<i64>("next").await.expect("opened");
    let (seen, mut contexts) = mpsc::unbounded_channel();
    let traced = |payload: i64| Metadata::new().with("traceparent", format!("00-{payload:032x}-00f067aa0ba902b7-01"));
    let mut messages: Vec<(i64, Metadata)> = (1..500).map(|payload| (payload, traced(payload))).collect();
    messages.push((500, Metadata::new()));
    messages.push((501, Metadata::new().with("traceparent", "malformed")));
    queue.enqueue_many(drafts(&messages)).await.expect("enqueued");
    let to = next.clone();
    let runs = Runs::start(Worker::new(queue.clone(), move |message: Message<i64>| {
        let (next, seen) = (to.clone(), seen.clone());
        async move {
            seen.send((message.payload, TraceContext::current())).expect("the test listens");
            tokio::task::yield_now().await; // lets other tasks run, which must not change the context
            next.enqueue(message.payload).await.map(drop)
        }
    }));
    drained(&queue).await;
    runs.stop().await;
    while let Some((payload, context)) = contexts.recv().await {
        assert_eq!(context.map(|context| context.trace_id()), (payload < 500).then_some(payload as u128));
    }
    let followed = next.take(999).await.expect("taken");
    assert_eq!(followed.len(), 501);
    for message in followed {
        let found = TraceContext::of(&message.metadata);
        assert_eq!(found.map(|found| found.trace_id()), (message.payload < 500).then_some(message.payload as u128));
        assert!(message.payload < 500 || message.metadata.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_handler_is_traced_if_all_messages_share_one_span() {
    let Place { queue, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    let (seen, mut calls) = mpsc::unbounded_channel();
    let runs = Runs::start(Worker::of_batches(queue.clone(), 10, move |messages: Vec<Message<i64>>| {
        seen.send((messages.len(), TraceContext::current())).expect("the test listens");
        async move { messages.iter().map(|_| Ok::<(), Infallible>(())).collect() }
    }));
    context().scope(queue.enqueue_many(&[1, 2, 3])).await.expect("enqueued");
    drained(&queue).await;
    let (messages, found) = calls.recv().await.expect("a call");
    assert_eq!((messages, found.map(|found| found.trace_id())), (3, Some(context().trace_id())));
    let apart = [(1, Metadata::new().with("traceparent", PARENT)), (2, Metadata::new())];
    queue.enqueue_many(drafts(&apart)).await.expect("enqueued");
    drained(&queue).await;
    assert_eq!(calls.recv().await.expect("a call"), (2, None));
    runs.stop().await;
}
