//! Every span of the library, with its name and its fields. Without a subscriber, a span costs one
//! atomic read.

use tracing::{Span, debug_span, field::Empty, info_span};

use crate::queue::message::{Message, trace::TraceContext};

/// The span of an enqueue, which ends with its commit. Its level is higher if the enqueue is part
/// of a trace.
pub(crate) fn enqueue(queue: &str, n: usize, trace: Option<&TraceContext>) -> Span {
    match trace {
        None => debug_span!("enqueue", queue, n),
        Some(trace) => info_span!(
            "enqueue",
            queue,
            n,
            trace_id = format_args!("{:032x}", trace.trace_id()),
            span_id = format_args!("{:016x}", trace.span_id()),
            parent_span_id = TraceContext::current().map(|parent| format!("{:016x}", parent.span_id())),
        ),
    }
}

/// The span of a statement that leases up to `n` messages. The field `got` is the number leased.
pub(crate) fn lease(queue: &str, n: usize) -> Span {
    debug_span!("lease", queue, n, got = Empty)
}

/// The span of a statement that takes up to `n` messages. The field `got` is the number taken.
pub(crate) fn take(queue: &str, n: usize) -> Span {
    debug_span!("take", queue, n, got = Empty)
}

/// The span of a statement that finds a message by its id.
pub(crate) fn find(queue: &str, id: i64) -> Span {
    debug_span!("find", queue, id, state = Empty)
}

/// The span of a statement that cancels up to `n` messages. The field `got` is the number
/// cancelled.
pub(crate) fn cancel(queue: &str, n: usize) -> Span {
    debug_span!("cancel", queue, n, got = Empty)
}

/// The span of a statement that reschedules up to `n` messages. The field `got` is the number
/// rescheduled.
pub(crate) fn reschedule(queue: &str, n: usize) -> Span {
    debug_span!("reschedule", queue, n, got = Empty)
}

/// The span of one handler call, with one or more messages.
pub(crate) fn handle<T>(queue: &str, messages: &[Message<T>]) -> Span {
    let first = messages.first();
    let span = info_span!(
        "handle",
        queue,
        id = first.map(|first| first.id),
        attempt = first.map(|first| first.attempt),
        messages = messages.len(),
        trace_id = Empty,
        parent_span_id = Empty,
        outcome = Empty
    );
    if !span.is_disabled()
        && let Some(trace) = TraceContext::of_all(messages)
    {
        span.record("trace_id", format_args!("{:032x}", trace.trace_id()));
        span.record("parent_span_id", format_args!("{:016x}", trace.span_id()));
    }
    span
}

/// The span of a statement that ends the leases of `n` messages.
pub(crate) fn settle(queue: &str, outcome: &'static str, n: usize) -> Span {
    debug_span!("settle", queue, outcome, n)
}
