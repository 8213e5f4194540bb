//! Traces across messages: an OTLP collector receives one trace that contains both the enqueue and
//! the handler.

use opentelemetry::{
    Context,
    trace::{SpanContext, TraceContextExt, TraceFlags, TraceState, TracerProvider},
};
use opentelemetry_otlp::WithExportConfig;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Span, instrument};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::{filter::LevelFilter, layer::SubscriberExt};
use trunkline::{Db, Draft, Enqueued, Failure, Message, Queue, Settings, TraceContext, Worker};

/// Sends all further spans to a collector such as `http://127.0.0.1:4318/v1/traces`. The provider's
/// shutdown sends the spans that are still waiting.
pub fn trace(collector: &str) -> Result<SdkTracerProvider, Box<dyn std::error::Error>> {
    let exporter = opentelemetry_otlp::SpanExporter::builder().with_http().with_endpoint(collector).build()?;
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).build();
    // With context activation, a span would start before the handler can set its parent, which the
    // handler reads from the message.
    let spans = tracing_opentelemetry::layer().with_tracer(provider.tracer("mails")).with_context_activation(false);
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(LevelFilter::INFO).with(spans))?;
    Ok(provider)
}

/// Enqueues a message within the current span, which becomes the parent of the handler's span.
#[instrument(skip(mails))]
async fn order(mails: &Queue<String>, to: &str) -> trunkline::Result<i64> {
    let span = Span::current().context().span().span_context().clone();
    let place = format!("00-{}-{}-{:02x}", span.trace_id(), span.span_id(), span.trace_flags());
    let draft = Draft::new(to.to_owned()).with("traceparent", place.as_str());
    TraceContext::parse(&place, None)
        .unwrap_or_else(TraceContext::root)
        .scope(mails.enqueue(draft))
        .await
        .map(Enqueued::id)
}

/// Handles a message in the library's span `handle`, and sets that span's parent to the span that
/// enqueued.
async fn send(mail: Message<String>) -> Result<(), Failure> {
    if let Some(from) = TraceContext::current() {
        let (trace, span, flags) = (from.trace_id().into(), from.span_id().into(), u8::from(from.is_sampled()));
        let parent = SpanContext::new(trace, span, TraceFlags::new(flags), true, TraceState::NONE);
        let _ = Span::current().set_parent(Context::new().with_remote_span_context(parent));
    }
    tracing::info!("a mail to {}", mail.payload);
    Ok(())
}

/// Sends one mail, and sends the traces to the collector at this address.
pub async fn run(url: &str, collector: &str) -> Result<u64, Box<dyn std::error::Error>> {
    let provider = trace(collector)?;
    let db = Db::connect(url).await?;
    db.migrate().await?;
    db.create_queue("mails", &Settings::of::<String>()).await?;
    let mails = db.queue::<String>("mails").await?;
    order(&mails, "ada@example.org").await?;
    let summary = Worker::new(mails, send).drain().await?;
    tokio::task::spawn_blocking(move || provider.shutdown()).await??; // sends the remaining spans
    Ok(summary.done)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = trunkline_embedded::Cluster::temporary().start()?;
    assert_eq!(run(&cluster.url("postgres"), "http://127.0.0.1:4318/v1/traces").await?, 1);
    Ok(())
}
