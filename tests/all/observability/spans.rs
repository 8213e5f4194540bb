//! The library's spans, as a subscriber receives them.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use trunkline::{Failure, Settings, TraceContext, Worker};

use crate::fixture::{Place, Runs, drained, place};

/// Keeps all spans of the library, in the order in which they started.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<BTreeMap<u64, Span>>>, Arc<AtomicU64>);

#[derive(Clone, Default)]
struct Span {
    name: &'static str,
    fields: BTreeMap<&'static str, String>,
}

impl Visit for Span {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}

impl Subscriber for Kept {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with("trunkline")
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut span = Span { name: attributes.metadata().name(), ..Span::default() };
        attributes.record(&mut span);
        let id = self.1.fetch_add(1, Ordering::Relaxed) + 1;
        self.0.lock().expect("no panic").insert(id, span);
        Id::from_u64(id)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        values.record(self.0.lock().expect("no panic").get_mut(&id.into_u64()).expect("a span of ours"));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Kept {
    /// Returns the spans with this name, as `name field=value …`.
    fn all(&self, name: &str) -> Vec<String> {
        let spans = self.0.lock().expect("no panic");
        let lines = spans.values().filter(|span| span.name == name).map(|span| {
            let fields = span.fields.iter().map(|(name, value)| format!("{name}={value}"));
            fields.collect::<Vec<_>>().join(" ")
        });
        lines.collect()
    }
}

/// The test runs on one thread, so that its subscriber receives the spans of all tasks that the
/// library spawns.
#[tokio::test]
async fn each_verb_has_a_span_and_says_what_it_did() {
    let kept = Kept::default();
    // Adds a second subscriber, so that `tracing` asks both whether they want a span. With only
    // one, `tracing` may ask the subscriber of the first thread that reaches the callsite, which
    // may belong to another test.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    let _subscribed = tracing::subscriber::set_default(kept.clone());
    let Place { queue, db: _db, .. } = place::<i64>(Settings::new("int8").max_attempts(2)).await;
    queue.enqueue(1).await.expect("enqueued");
    queue.enqueue_many(&[2, 3, 4]).await.expect("enqueued");
    assert_eq!(kept.all("enqueue"), ["n=1 queue=q", "n=3 queue=q"]);
    assert_eq!(queue.take(1).await.expect("taken").len(), 1);
    let leased = queue.lease(9).await.expect("leased");
    queue.ack(&leased[..1]).await.expect("held");
    queue.retry(&leased[1..], Duration::ZERO, "no").await.expect("held");
    assert_eq!(
        (kept.all("take"), kept.all("lease")),
        (vec!["got=1 n=1 queue=q".into()], vec!["got=3 n=9 queue=q".into()])
    );
    assert_eq!(kept.all("settle"), ["n=1 outcome=done queue=q", "n=2 outcome=retried queue=q"]);

    let id = queue.enqueue(6).await.expect("enqueued").id();
    queue.find(id).await.expect("looked for");
    queue.reschedule(&[id, 7], Duration::from_secs(60)).await.expect("moved");
    queue.cancel(&[id]).await.expect("cancelled");
    assert_eq!(kept.all("find"), [format!("id={id} queue=q state=due")]);
    assert_eq!(
        (kept.all("reschedule"), kept.all("cancel")),
        (vec!["got=1 n=2 queue=q".into()], vec!["got=1 n=1 queue=q".into()])
    );

    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let trace = TraceContext::parse(trace, None).expect("valid");
    queue.purge().await.expect("purged");
    let id = trace.scope(queue.enqueue(5)).await.expect("enqueued").id();
    let enqueued = kept.all("enqueue").pop().expect("a span");
    let span_id = enqueued.split("span_id=").last().and_then(|rest| rest.split(' ').next()).expect("its id").to_owned();
    let trace_id = "trace_id=4bf92f3577b34da6a3ce929d0e0e4736";
    assert_eq!(enqueued, format!("n=1 parent_span_id=00f067aa0ba902b7 queue=q span_id={span_id} {trace_id}"));
    let runs = Runs::start(Worker::new(queue.clone(), |message| async move {
        if message.attempts() == 1 { Err(Failure::retry_after(Duration::ZERO, "once")) } else { Ok(()) }
    }));
    drained(&queue).await;
    runs.stop().await;
    let handled = |attempt, outcome| {
        format!("attempt={attempt} id={id} messages=1 outcome={outcome} parent_span_id={span_id} queue=q {trace_id}")
    };
    assert_eq!(kept.all("handle"), [handled(1, "retried"), handled(2, "done")]);
}
