//! A command, run for a message. Its life as one sentence: started, fed, listened to, ended, judged.

use std::{
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::AsyncWriteExt,
    process::{ChildStdin, Command},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use trunkline::{Attempt, Failure, Message};

use super::{
    counts::Counts,
    ending::{Ending, LEFTOVERS},
    group::Group,
    lines::LastLines,
    output::{Output, Stream},
};
use crate::{any::Id, text::Text, time};

/// The exit code of a command whose message is not to be tried again.
const DEAD: i32 = 100;

/// What is to be run, and how.
pub struct Job {
    pub exec: String,
    pub queue: String,
    /// Payloads are bytes, and nothing is added to them.
    pub raw: bool,
    pub timeout: Option<Duration>,
    /// The command may see how we log in.
    pub pass_credentials: bool,
    pub output: Output,
    pub counts: Arc<Counts>,
    /// The program ends, and waits no longer.
    pub give_up: CancellationToken,
}

impl Job {
    pub async fn run(&self, id: Id, message: Message<Text>, attempt: Attempt<Text>) -> Result<(), Failure> {
        let _running = self.counts.start();
        let tried = message.charged();
        let prefix = format!("{} {id} | ", self.queue);
        let mut command = self.command(id, &message);
        let (mut child, group) =
            Group::start(&mut command).map_err(|cause| Failure::retry(format!("cannot start sh: {cause}")))?;

        let feeding = child.stdin.take().map(|to| tokio::spawn(feed(to, message.payload, self.raw)));
        let last_lines = Arc::new(Mutex::new(LastLines::default()));
        let mut listening = JoinSet::new();
        if let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) {
            let last_lines = last_lines.clone();
            let seen = move |piece: &[u8]| last_lines.lock().unwrap_or_else(PoisonError::into_inner).add(piece);
            listening.spawn(self.output.clone().pass(Stream::Out, out, prefix.clone(), |_| ()));
            listening.spawn(self.output.clone().pass(Stream::Err, err, prefix, seen));
        }

        let ending = Ending::of(&mut child, &group, self.timeout, [&attempt.lost(), &self.give_up]).await?;
        feeding.iter().for_each(tokio::task::JoinHandle::abort); // it reads no more
        let heard = async { while listening.join_next().await.is_some() {} };
        let _ = timeout(LEFTOVERS, heard).await; // who holds the pipe open longer is killed
        drop(group);
        let last_lines = last_lines.lock().unwrap_or_else(PoisonError::into_inner).text();
        self.judge(id, tried, ending, &last_lines, &attempt).await
    }

    fn command(&self, id: Id, message: &Message<Text>) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.exec);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if !self.pass_credentials {
            // A command that prints its environment would put them into a dead letter.
            command.env_remove("DATABASE_URL").env_remove("PGPASSWORD");
        }
        command.envs(self.environment(id, message)).kill_on_drop(true);
        command
    }

    /// What a command is told beside the payload.
    fn environment(&self, id: Id, message: &Message<Text>) -> Vec<(&'static str, String)> {
        let mut all = vec![
            ("TRUNKLINE_QUEUE", self.queue.clone()),
            ("TRUNKLINE_ID", id.to_string()),
            ("TRUNKLINE_ATTEMPT", message.charged().to_string()),
            ("TRUNKLINE_ENQUEUED_AT", time::rfc3339(message.enqueued_at)),
        ];
        // The names that programs look for, as in OpenTelemetry's proposal for environment variables.
        let trace = [("TRACEPARENT", message.metadata.traceparent()), ("TRACESTATE", message.metadata.tracestate())];
        all.extend(trace.into_iter().filter_map(|(name, value)| Some((name, value?.to_owned()))));
        all
    }

    async fn judge(
        &self,
        id: Id,
        tried: u32,
        ending: Ending,
        last_lines: &str,
        attempt: &Attempt<Text>,
    ) -> Result<(), Failure> {
        let told = ending.told();
        let reason = if last_lines.is_empty() { told.clone() } else { format!("{told}: {last_lines}") };
        let failure = match ending {
            Ending::Exited(status) if status.success() => {
                self.counts.done();
                return Ok(());
            }
            // Where the lease is lost, the message is someone else's already, and what is answered here is discarded.
            Ending::GivenUp => return attempt.release().await.map_err(Failure::from),
            Ending::Exited(status) if status.code() == Some(DEAD) => {
                self.counts.dead();
                Failure::dead(reason)
            }
            Ending::Exited(_) | Ending::TimedOut(_) => {
                self.counts.failed();
                Failure::retry(reason)
            }
        };
        let line = format!("{} {id}: attempt {tried} failed: {told}", self.queue);
        self.output.say(Stream::Err, line).await;
        Err(failure)
    }
}

/// Gives a command its input. One that does not read it, or not to its end, is free to do so.
async fn feed(mut to: ChildStdin, Text(mut payload): Text, raw: bool) {
    if !raw {
        payload.push(b'\n');
    }
    let _ = to.write_all(&payload).await;
}
