//! `trunkline relay`

use std::{num::NonZeroUsize, time::Duration};

use crate::{number, time};

/// The arguments of `trunkline relay`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Out, at least once: a message leaves the queue when the broker has confirmed it. A message
that the broker refuses for good becomes a dead letter with the broker's reason. A message that it
refuses for now is tried again, and no attempt is counted.
In, effectively once: the broker's position is stored in the transaction that enqueues.

Addresses, each available in builds with its feature:
  nats://[USER:PASSWORD@]HOST[:PORT][,…]/SUBJECT    from: /STREAM[?subject=FILTER]  relay-nats
  redis://[:PASSWORD@]HOST[:PORT]/STREAM[?wait=N]   from: /STREAM                   relay-redis
  kafka://HOST[:PORT][,…]/TOPIC                     from: /TOPIC                    relay-kafka
  rabbitmq://[USER:PASSWORD@]HOST[:PORT]/…          from: /STREAM                   relay-rabbitmq
Over TLS: tls://, rediss:// and rabbitmqs://, with ?ca=FILE for a server's own certificates.
For Redis, ?maxlen=N trims each stream to about N entries, and streams grow without bound without
it; ?db=N selects a database, also with --from. amqp:// and amqps:// mean rabbitmq:// and
rabbitmqs://.
A program with all of them, which you build from the commit of your other programs (--rev COMMIT):
  cargo install --locked --git https://github.com/trunkline/trunkline trunkline-cli \
    --features relay

The subject, stream or topic may contain fields that each message fills: {queue}, {key},
{metadata.NAME}, {payload.FIELD}; {+metadata.NAME} if the value may contain the dots that separate
the parts of a subject. A message that cannot fill them becomes a dead letter.

SIGTERM, SIGINT and, on Linux, SIGHUP end it gracefully: batches in progress are finished, and all other messages
are given back.

Examples:
  trunkline relay orders --to 'nats://localhost/orders.{metadata.tenant}'
  trunkline relay orders --to redis://localhost/orders --envelope cloudevents --json
  trunkline relay --from nats://localhost/ORDERS --to orders")]
#[cfg_attr(not(feature = "trunkline-relay"), allow(dead_code, reason = "builds without relays only show them"))]
pub struct Args {
    /// The queue that messages leave
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    queue: Option<String>,
    /// The broker that messages come from, instead of a queue
    #[arg(long, value_name = "ADDRESS")]
    from: Option<String>,
    /// The broker's address; with --from, the queue
    #[arg(long, value_name = "ADDRESS|QUEUE")]
    to: String,
    /// The form of a message: the payload as it is, or in a JSON envelope
    #[arg(long, value_name = "none|cloudevents", default_value = "none", conflicts_with = "from")]
    envelope: String,
    /// The maximum number of messages in progress, including those that the broker has refused for
    /// now; 8,192 if not set, and fewer if together they have more than about 64 MiB
    #[arg(long, value_name = "N", value_parser = number::more_than_zero, conflicts_with = "from")]
    in_hand: Option<NonZeroUsize>,
    /// A lease time instead of the queue's own: it determines how soon messages come back after a
    /// crash
    #[arg(long, value_name = "TIME", value_parser = time::more_than_zero, conflicts_with = "from")]
    lease: Option<Duration>,
    /// The name under which the broker's position is stored; if several relays have the same name,
    /// only one of them works at a time
    #[arg(long, requires = "from", conflicts_with = "queue")]
    name: Option<String>,
    /// Skip messages that the queue cannot store, with a warning, instead of stopping there
    #[arg(long, requires = "from", conflicts_with = "queue")]
    pass_over: bool,
    /// Print the progress on standard output each second, as a line of JSON
    #[arg(long)]
    json: bool,
}

#[cfg(not(feature = "trunkline-relay"))]
#[allow(clippy::unused_async, reason = "as it is in builds that can")]
pub async fn run(_: Args, _: &crate::database::Database) -> crate::error::Result<()> {
    Err(crate::error::Error::usage("this program was built without relays").hint(
        "cargo install --locked --git https://github.com/trunkline/trunkline trunkline-cli --features relay, or one of \
         relay-nats, relay-redis, relay-kafka, relay-rabbitmq",
    ))
}

#[cfg(feature = "trunkline-relay")]
pub use with_brokers::run;

#[cfg(feature = "trunkline-relay")]
mod with_brokers {
    use std::{
        sync::{
            Arc,
            mpsc::{SyncSender, sync_channel},
        },
        time::Duration,
    };

    use serde_json::json;
    use tokio::{
        task::{JoinHandle, spawn_blocking},
        time::{MissedTickBehavior, interval},
    };
    use tokio_util::sync::CancellationToken;
    use trunkline_relay::{Error as RelayError, Inward, Progress, Relay};

    use super::Args;
    use crate::{
        database::Database,
        error::{Error, Result},
        print::{self, thousands},
        stop::Stop,
        warnings,
    };

    pub async fn run(args: Args, database: &Database) -> Result<()> {
        let stop = Stop::on_signals()?;
        let aside = ErrorLines::start();
        let lines = aside.clone();
        warnings::show_with(move |line| lines.say(line), !database.quiet);
        let (unwritable, note) = (CancellationToken::new(), aside.clone());
        let ended = carry(&args, database, stop, note, args.json.then_some(&unwritable)).await;
        aside.end();
        let Some(((shown, written), name)) = ended? else { return Ok(()) };
        if !database.quiet {
            let arrived = if args.from.is_some() { "received" } else { "confirmed" };
            let (confirmed, refused) = (thousands(shown.confirmed()), thousands(shown.refused()));
            print::note(format!("{name}: {confirmed} {arrived}, {refused} refused"));
        }
        written
    }

    /// The relay's progress, and the error of printing it, unless the reader has gone.
    type Ended = (Arc<Progress>, Result<()>);

    /// Runs the relay until a signal arrives, or the progress cannot be printed. Returns its
    /// progress and the queue's name, or `None` if the signal arrived before the relay was
    /// connected.
    async fn carry<'a>(
        args: &'a Args,
        database: &Database,
        mut stop: Stop,
        note: ErrorLines,
        unwritable: Option<&CancellationToken>,
    ) -> Result<Option<(Ended, &'a String)>> {
        let (mut asked, cannot_write) = (stop.clone(), unwritable.cloned().unwrap_or_default());
        let asked = async move {
            tokio::select! {
                () = asked.asked() => {}
                () = cannot_write.cancelled() => note.say("standard output cannot be written to: the relay ends"),
            }
        };
        let (ended, name) = match (&args.queue, &args.from) {
            (Some(queue), _) => {
                let Some(relay) = stop.or_connected(out(args, queue, database)).await? else { return Ok(None) };
                (Box::pin(until(relay.progress(), unwritable, relay.run(asked))).await?, queue)
            }
            (None, Some(address)) => {
                let Some(relay) = stop.or_connected(inward(args, address, database)).await? else { return Ok(None) };
                (Box::pin(until(relay.progress(), unwritable, relay.run(asked))).await?, &args.to)
            }
            (None, None) => return Err(Error::usage("name a queue, or --from ADDRESS")),
        };
        Ok(Some((ended, name)))
    }

    /// Sends lines to the thread that writes to standard error. That thread is separate, because a
    /// stuck reader must not delay the renewal of leases.
    #[derive(Clone)]
    struct ErrorLines(SyncSender<Said>);

    enum Said {
        Line(String),
        End(SyncSender<()>),
    }

    impl ErrorLines {
        /// The maximum number of lines that wait for the reader. Further lines are dropped.
        const WAITING: usize = 64;

        fn start() -> Self {
            let (sender, said) = sync_channel(Self::WAITING);
            std::thread::spawn(move || {
                for one in said {
                    match one {
                        Said::Line(line) => print::note(line),
                        Said::End(done) => drop(done.try_send(())), // fails if `end` has stopped waiting
                    }
                }
            });
            Self(sender)
        }

        fn say(&self, line: &str) {
            let _ = self.0.try_send(Said::Line(line.to_owned())); // dropped if the reader is stuck
        }

        /// Waits until all lines are written. Gives up if the reader is stuck.
        fn end(&self) {
            let (done, ended) = sync_channel(1);
            if self.0.try_send(Said::End(done)).is_ok() {
                let _ = ended.recv_timeout(Duration::from_secs(1)); // fails if the reader is stuck
            }
        }
    }

    async fn out(args: &Args, queue: &str, database: &Database) -> Result<Relay> {
        let envelope = args.envelope.parse().map_err(told)?;
        let db = database.connect().await?;
        let queue = db.queue(queue).await.map_err(|error| of_type(queue, error))?;
        let (sink, route) = trunkline_relay::sink(&args.to).await.map_err(told)?;
        let mut relay = Relay::new(queue, sink).route(route).envelope(envelope);
        if let Some(hands) = args.in_hand {
            relay = relay.in_hand(hands.get());
        }
        if let Some(lease) = args.lease {
            relay = relay.lease(lease);
        }
        Ok(relay)
    }

    async fn inward(args: &Args, address: &str, database: &Database) -> Result<Inward> {
        let db = database.connect().await?;
        let queue = db.queue(&args.to).await.map_err(|error| of_type(&args.to, error))?;
        let relay = Inward::new(trunkline_relay::source(address).await.map_err(told)?, queue).pass_over(args.pass_over);
        Ok(match &args.name {
            Some(name) => relay.name(name),
            None => relay,
        })
    }

    fn of_type(queue: &str, error: trunkline::Error) -> Error {
        if error.is_wrong_type() {
            let why = format!(
                "a relay carries bytea, text, varchar, json and jsonb, and queue {queue:?} has payloads of another type"
            );
            return Error::usage(why);
        }
        Error::Database(error)
    }

    /// Runs the relay until it ends. Prints its progress if there is a token, which is cancelled
    /// when the progress cannot be printed.
    async fn until(
        progress: Arc<Progress>,
        unwritable: Option<&CancellationToken>,
        run: impl Future<Output = trunkline_relay::Result<Arc<Progress>>>,
    ) -> Result<Ended> {
        let mut run = std::pin::pin!(run);
        let mut ticks = interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        // the task that prints, so that a slow reader delays only the next line
        let mut line: Option<JoinHandle<Result<()>>> = None;
        let mut failed = Ok(());
        loop {
            let prints = unwritable.filter(|unwritable| !unwritable.is_cancelled());
            tokio::select! {
                ended = &mut run => return Ok((ended.map_err(told)?, failed)),
                written = written(&mut line) => {
                    line = None;
                    if let Err(error) = written {
                        if let Some(unwritable) = prints {
                            unwritable.cancel();
                        }
                        failed = if matches!(error, Error::OutputClosed) { Ok(()) } else { Err(error) };
                    }
                }
                _ = ticks.tick(), if prints.is_some() && line.is_none() => {
                    let progress = progress.clone();
                    line = Some(spawn_blocking(move || tell(&progress)));
                }
            }
        }
    }

    /// Waits until a line is written. Never ends without a line.
    async fn written(line: &mut Option<JoinHandle<Result<()>>>) -> Result<()> {
        match line {
            Some(line) => line.await.unwrap_or_else(|_| Err(Error::new("a bug: the thread that writes has ended"))),
            None => std::future::pending().await,
        }
    }

    fn tell(progress: &Progress) -> Result<()> {
        let error = progress.last_error().map(|(_, why)| why);
        let told = json!({
            "confirmed": progress.confirmed(), "refused": progress.refused(), "again": progress.again(), "held": progress.held(), "last_error": error,
        });
        print::if_open(print::line(told.to_string()))
    }

    #[allow(clippy::needless_pass_by_value, reason = "as map_err hands it over")]
    fn told(error: RelayError) -> Error {
        if error.is_usage() {
            return Error::usage(error.to_string());
        }
        match error.database() {
            Some(cause) => Error::Database(cause.clone()),
            None if error.is_gap() || error.is_stopped() => Error::new(error.to_string()),
            None => Error::new(error.to_string())
                .hint("a relay starts once the broker accepts it; a running relay waits for its broker"),
        }
    }
}
