//! The trace that a piece of work belongs to, in the W3C's notation. A handler passes it on to the
//! messages that it enqueues.

use std::{borrow::Cow, fmt};

use futures_util::future::BoxFuture;
use uuid::Uuid;

use crate::queue::message::metadata::Metadata;

tokio::task_local! {
    static CURRENT: TraceContext;
}

/// The maximum length of a `tracestate` that is passed on, in bytes. The W3C requires support for
/// at least this length.
const MAX_STATE: usize = 512;

/// A position in a distributed trace: the trace, and the span that is the parent of the next span.
/// A message's [`Metadata`] carries it as `traceparent` and `tracestate` of [W3C Trace
/// Context](https://www.w3.org/TR/trace-context/).
///
/// Within [`TraceContext::scope`], every enqueued message continues the trace. A
/// [`Worker`](crate::Worker) runs each handler within the scope of its message, so messages that
/// the handler enqueues belong to the same trace. Outside of any scope, nothing is added to
/// messages. `tracing` and its subscriber create and export the spans.
///
/// ```
/// # use trunkline::{Queue, Result, TraceContext};
/// # async fn example(mails: Queue<String>, header: &str) -> Result<()> {
/// // For example, from the header of an HTTP request.
/// let context = TraceContext::parse(header, None).unwrap_or_else(TraceContext::root);
/// context.scope(mails.enqueue("ada@example.org".to_owned())).await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TraceContext {
    trace_id: u128,
    span_id: u64,
    sampled: bool,
    state: Option<Box<str>>,
}

impl TraceContext {
    /// Starts a sampled trace with random ids.
    #[must_use]
    pub fn root() -> Self {
        let (high, low) = (random(), random());
        Self { trace_id: u128::from(high) << 64 | u128::from(low), span_id: random(), sampled: true, state: None }
    }

    /// Reads a `traceparent` of any version of the recommendation. Returns `None` if it is
    /// malformed, because the W3C then requires a new trace. A `tracestate` of up to 512 characters
    /// is passed on unchanged.
    #[must_use]
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let (version, rest) = traceparent.split_at_checked(2)?;
        let version = hex(version)?;
        let (ids, more) = rest.split_at_checked(53)?;
        let mut parts = ids.strip_prefix('-')?.split('-');
        let (trace_id, span_id, flags) = (parts.next()?, parts.next()?, parts.next()?);
        if trace_id.len() != 32 || span_id.len() != 16 || flags.len() != 2 || parts.next().is_some() {
            return None;
        }
        // Refuses version 255, which is forbidden. Ignores parts that later versions may append.
        if version == 255 || !(more.is_empty() || version > 0 && more.starts_with('-')) {
            return None;
        }
        let (trace_id, span_id) = (hex(trace_id)?, hex(span_id)? as u64);
        let state = tracestate.filter(|state| (1..=MAX_STATE).contains(&state.len()) && state.is_ascii());
        let found = Self { trace_id, span_id, sampled: hex(flags)? & 1 == 1, state: state.map(Into::into) };
        (found.trace_id != 0 && found.span_id != 0).then_some(found)
    }

    /// Returns the context in a message's metadata, or `None` if there is none or it is malformed.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Option<Self> {
        Self::parse(metadata.traceparent()?, metadata.tracestate())
    }

    /// Returns a new span of the same trace.
    pub(crate) fn child(&self) -> Self {
        Self { span_id: random(), ..self.clone() }
    }

    /// Returns the context of the innermost scope that the caller runs in.
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }

    /// Runs a future within this context. Tasks that the future spawns are not within the context.
    pub fn scope<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, work)
    }

    /// Returns the trace's id, never 0.
    #[must_use]
    pub fn trace_id(&self) -> u128 {
        self.trace_id
    }

    /// Returns the span's id, never 0.
    #[must_use]
    pub fn span_id(&self) -> u64 {
        self.span_id
    }

    /// Returns true if this trace is recorded.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.sampled
    }

    /// Returns the `traceparent` in version 00 of the W3C's format, like [`Display`](fmt::Display).
    #[must_use]
    pub fn traceparent(&self) -> String {
        self.to_string()
    }

    /// Returns the `tracestate`: additional data of tracing vendors.
    #[must_use]
    pub fn tracestate(&self) -> Option<&str> {
        self.state.as_deref()
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, u8::from(self.sampled))
    }
}

/// Returns the context of messages that are enqueued now: a new span of the current trace.
pub(crate) fn next() -> Option<TraceContext> {
    CURRENT.try_with(TraceContext::child).ok()
}

/// Returns the context of one message. A trace in the message's own metadata takes precedence.
pub(crate) fn for_message(metadata: &Metadata) -> Option<TraceContext> {
    match metadata.traceparent() {
        None => next(),
        Some(_) => TraceContext::of(metadata),
    }
}

/// Calls a function and runs the future that it returns, both within the context if there is one.
pub(crate) fn within<R: 'static>(
    trace: Option<TraceContext>,
    call: impl FnOnce() -> BoxFuture<'static, R>,
) -> BoxFuture<'static, R> {
    match trace {
        None => call(),
        Some(trace) => {
            let work = CURRENT.sync_scope(trace.clone(), call);
            Box::pin(trace.scope(work))
        }
    }
}

/// Adds a trace to a message's metadata, unless the metadata already names a trace.
pub(crate) fn stamped<'a>(metadata: &'a Metadata, trace: Option<&TraceContext>) -> Cow<'a, Metadata> {
    match trace {
        Some(trace) if metadata.traceparent().is_none() => {
            let mut stamped = metadata.clone();
            stamped.insert("traceparent", trace.traceparent());
            if let Some(state) = trace.tracestate() {
                stamped.insert("tracestate", state);
            }
            Cow::Owned(stamped)
        }
        _ => Cow::Borrowed(metadata),
    }
}

/// Reads lower-case hexadecimal digits. Rejects everything else, although `from_str_radix` would
/// accept some of it.
fn hex(digits: &str) -> Option<u128> {
    digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')).then_some(())?;
    u128::from_str_radix(digits, 16).ok()
}

/// Returns a random number, never 0. A random UUID has six fixed bits; the halves are combined so
/// that every bit of the result stays random.
fn random() -> u64 {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    (high ^ low).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn valid_traceparent_is_read_and_written_as_version_00() {
        for (text, sampled) in [
            (format!("00-{TRACE}-{SPAN}-01"), true),
            (format!("00-{TRACE}-{SPAN}-00"), false),
            (format!("00-{TRACE}-{SPAN}-02"), false), // other flags are ignored
            (format!("00-{TRACE}-{SPAN}-ff"), true),
            (format!("cc-{TRACE}-{SPAN}-01"), true), // a future version may append parts
            (format!("cc-{TRACE}-{SPAN}-01-what-the-future-will-be-like"), true),
            (format!("fe-{TRACE}-{SPAN}-00-"), false),
        ] {
            let context = TraceContext::parse(&text, None).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(
                (context.trace_id(), context.span_id()),
                (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0x00f0_67aa_0ba9_02b7)
            );
            assert_eq!(context.is_sampled(), sampled, "{text}");
            assert_eq!(context.traceparent(), format!("00-{TRACE}-{SPAN}-0{}", u8::from(sampled)));
        }
    }

    #[test]
    fn invalid_traceparent_is_ignored() {
        let zeros = "0".repeat(32);
        for text in [
            String::new(),
            "00".to_owned(),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("FE-{TRACE}-{SPAN}-01"),
            format!("0-{TRACE}-{SPAN}-01"),
            format!("000-{TRACE}-{SPAN}-01"),
            format!(".0-{TRACE}-{SPAN}-01"),
            format!("+0-{TRACE}-{SPAN}-01"),
            format!("00-{zeros}-{SPAN}-01"),
            format!("00-{TRACE}-{}-01", &zeros[..16]),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{TRACE}-{}-01", SPAN.to_uppercase()),
            format!("00-{}.-{SPAN}-01", &TRACE[..31]),
            format!("00-+{}-{SPAN}-01", &TRACE[..31]),
            format!("00-{TRACE}0-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", &TRACE[..31]),
            format!("00-{TRACE}-{}-01", &SPAN[..15]),
            format!("00-{TRACE}-{SPAN}0-01"),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{TRACE}-{SPAN}-001"),
            format!("00-{TRACE}-{SPAN}-.0"),
            format!("00-{TRACE}-{SPAN}-0G"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("00-{TRACE}-{SPAN}-01-"),
            format!("00-{TRACE}-{SPAN}"),
            format!("00_{TRACE}_{SPAN}_01"),
            format!("cc-{TRACE}-{SPAN}-01.what-the-future-will-not-be-like"),
            format!("cc-{TRACE}-{SPAN}-0"),
            format!(" 00-{TRACE}-{SPAN}-01"),
            format!("00-{}é-{SPAN}-01", &TRACE[..30]),
            format!("0é{}", "x".repeat(60)),
        ] {
            assert_eq!(TraceContext::parse(&text, None), None, "{text:?}");
        }
    }

    #[test]
    fn child_is_another_span_of_its_trace_with_its_state() {
        let text = format!("00-{TRACE}-{SPAN}-01");
        let context = TraceContext::parse(&text, Some("congo=t61rcWkgMzE,rojo=1")).expect("valid");
        let child = context.child();
        assert_ne!(child.span_id(), context.span_id());
        assert_eq!(TraceContext { span_id: context.span_id(), ..child }, context);
        let long = "x".repeat(MAX_STATE + 1);
        assert_eq!(TraceContext::parse(&text, Some(&long)).expect("valid").tracestate(), None);
        assert_ne!(TraceContext::root().trace_id(), TraceContext::root().trace_id());
    }

    #[test]
    fn a_message_takes_the_trace_over_unless_it_names_one() {
        let (own, trace) = (Metadata::new().with("traceparent", "mine"), TraceContext::root());
        assert_eq!(*stamped(&own, Some(&trace)), own);
        let stamp = stamped(&Metadata::new().with("tenant", "acme"), Some(&trace)).into_owned();
        assert_eq!(TraceContext::of(&stamp), Some(trace));
        assert_eq!(stamp.get("tenant"), Some("acme"));
        assert!(matches!(stamped(&Metadata::new(), None), Cow::Borrowed(_)));
    }
}
