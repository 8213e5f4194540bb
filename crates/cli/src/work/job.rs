//! A command that runs for one message. Its steps are: start, feed, read, end, judge.

use std::{
    io,
    os::unix::process::ExitStatusExt,
    pin::pin,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rustix::process::Signal;
use tokio::{
    io::AsyncWriteExt,
    process::{ChildStdin, Command},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use trunkline::{Attempt, Failure, Message};

use super::{
    absent::{self, Absent},
    counts::Counts,
    ending::{Ending, LEFTOVERS},
    group::Group,
    lines::LastLines,
    output::{Output, Stream},
};
use crate::{address::secret_variables, any::Id, stop::Stop, text::Text, time};

/// The exit code with which a command requests that its message is not retried.
const DEAD: i32 = 100;
/// The time limit within which this program also has to receive the signal that ended a command.
const SIGNALLED: Duration = Duration::from_millis(500);
/// The pause after a command that could not be started.
const BREATH: Duration = Duration::from_secs(1);
/// The pause before the second attempt to give a message back. Each further pause is twice as long,
/// up to the longest.
const SOON: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_millis(1600);

/// The script that runs the command after it has read a first line of input. The program sends that
/// line once the guard has recorded the process group. If the program is killed earlier, the
/// command never starts.
const GATE: &str = "read -r _ && exec sh -c \"$0\"";

/// The command for each message, and its options.
pub struct Job {
    pub exec: String,
    pub queue: String,
    /// True if payloads are bytes, which get no line break.
    pub raw: bool,
    pub timeout: Option<Duration>,
    /// True if the command may see the credentials of the database.
    pub pass_credentials: bool,
    pub output: Output,
    pub counts: Arc<Counts>,
    /// Cancelled when the program stops waiting for commands.
    pub give_up: CancellationToken,
    pub stop: Stop,
    pub absent: Arc<Absent>,
}

impl Job {
    pub async fn run(&self, id: Id, message: Message<Text>, attempt: Attempt<Text>) -> Result<(), Failure> {
        if self.absent.is_noted() {
            return self.give_back(&attempt).await;
        }
        let _running = self.counts.start();
        let tried = message.attempts();
        let prefix = format!("{} {id} | ", self.queue);
        let mut command = self.command(id, &message);
        let (mut child, group) = match Group::start(&mut command) {
            Ok(started) => started,
            Err(cause) => return self.not_started(id, &cause, &attempt).await,
        };

        let feeding = child.stdin.take().map(|to| tokio::spawn(feed(to, message.payload, self.raw)));
        let last_lines = Arc::new(Mutex::new(LastLines::default()));
        let (mut listening, ended) = (JoinSet::new(), CancellationToken::new());
        if let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) {
            let last_lines = last_lines.clone();
            let seen = move |piece: &[u8]| last_lines.lock().unwrap_or_else(PoisonError::into_inner).add(piece);
            let [of_out, of_err] = [Stream::Out, Stream::Err].map(|stream| (stream, ended.clone()));
            listening.spawn(self.output.clone().pass(of_out, out, prefix.clone(), |_| ()));
            listening.spawn(self.output.clone().pass(of_err, err, prefix, seen));
        }

        let ending = Ending::of(&mut child, &group, self.timeout, [&attempt.lost(), &self.give_up]).await?;
        feeding.iter().for_each(tokio::task::JoinHandle::abort); // the command has ended and reads no more
        let mut heard = pin!(async { while listening.join_next().await.is_some() {} });
        let is_heard = timeout(LEFTOVERS, &mut heard).await.is_ok();
        drop(group); // kills the processes that keep the pipes open
        if !is_heard {
            ended.cancel();
            // The reader of this program's output may be slow. The message is not done before its
            // output is passed on.
            tokio::select! {
                () = heard => {}
                () = self.give_up.cancelled() => {}
            }
        }
        let last_lines = last_lines.lock().unwrap_or_else(PoisonError::into_inner).text();
        self.judge(id, tried, ending, &last_lines, &attempt).await
    }

    fn command(&self, id: Id, message: &Message<Text>) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", GATE, &self.exec]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if !self.pass_credentials {
            // Removes the credentials: if a command printed its environment, they would be in the
            // error of a dead letter.
            for name in secret_variables(|name| std::env::var(name).ok()) {
                command.env_remove(name);
            }
        }
        for (name, value) in self.environment(id, message) {
            // Without a value, removes what this program inherited, for example from another
            // `trunkline work`.
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.kill_on_drop(true);
        command
    }

    /// Returns the variables that describe the message to the command.
    fn environment(&self, id: Id, message: &Message<Text>) -> [(&'static str, Option<String>); 8] {
        let Message { metadata, .. } = message;
        [
            ("TRUNKLINE_QUEUE", Some(self.queue.clone())),
            ("TRUNKLINE_ID", Some(id.to_string())),
            ("TRUNKLINE_ATTEMPT", Some(message.attempts().to_string())),
            ("TRUNKLINE_ENQUEUED_AT", Some(time::rfc3339(message.enqueued_at))),
            ("TRUNKLINE_KEY", message.key.as_deref().map(str::to_owned)),
            ("TRUNKLINE_METADATA", serde_json::to_string(metadata).ok().filter(|_| !metadata.is_empty())),
            // The environment variables that OpenTelemetry proposes, because other programs look
            // for them.
            ("TRACEPARENT", metadata.get("traceparent").map(str::to_owned)),
            ("TRACESTATE", metadata.get("tracestate").map(str::to_owned)),
        ]
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
            // If the lease is lost, the result of this call has no effect.
            Ending::GivenUp => return self.give_back(attempt).await,
            Ending::Exited(status) if self.absent.is_said_by(status).await => {
                self.absent.note(reason);
                return self.give_back(attempt).await;
            }
            Ending::Exited(status) if status.success() => {
                self.counts.done();
                return Ok(());
            }
            Ending::Exited(status) if self.is_stopped_with(status).await => return self.give_back(attempt).await,
            Ending::Exited(status) if status.code() == Some(DEAD) => {
                self.counts.dead();
                Failure::dead(reason)
            }
            Ending::Exited(_) | Ending::TimedOut(_) => {
                self.absent.saw();
                self.counts.failed();
                Failure::retry(reason)
            }
        };
        let line = format!("{} {id}: attempt {tried} failed: {told}", self.queue);
        self.output.say(Stream::Err, line).await;
        Err(failure)
    }

    /// Returns true if the signal that ended a command also reached this program, because service
    /// managers send signals to all processes of a service.
    async fn is_stopped_with(&self, status: ExitStatus) -> bool {
        let ends = [Signal::TERM, Signal::INT, Signal::HUP].map(Signal::as_raw);
        // Also recognizes the signal in the exit code of a shell: 128 plus the number of the signal
        // that ended its command.
        let signal = status.signal().or_else(|| status.code().map(|code| code - 128));
        let mut stop = self.stop.clone();
        signal.is_some_and(|signal| ends.contains(&signal)) && timeout(SIGNALLED, stop.asked()).await.is_ok()
    }

    /// Gives the message back. A command that never started does not count as an attempt.
    async fn not_started(&self, id: Id, cause: &io::Error, attempt: &Attempt<Text>) -> Result<(), Failure> {
        if absent::may_pass(cause) {
            let line = format!("{} {id}: given back: cannot start sh: {cause}", self.queue);
            self.output.say(Stream::Err, line).await;
            let _ = timeout(BREATH, self.give_up.cancelled()).await; // ends the pause early if the program is ending
        } else {
            self.absent.note(format!("cannot start sh: {cause}"));
        }
        self.give_back(attempt).await
    }

    /// Gives the message back without counting an attempt. Retries while the database is
    /// unavailable, until the lease is lost. At the end of the program, retries for three seconds.
    async fn give_back(&self, attempt: &Attempt<Text>) -> Result<(), Failure> {
        let mut pause = SOON;
        loop {
            let Err(error) = attempt.release().await else { return Ok(()) };
            let is_lost = error.is_lease_lost() || attempt.lost().is_cancelled();
            if is_lost || pause > LONGEST && self.stop.is_asked() {
                return Err(Failure::lease_lost(error.to_string()));
            }
            tokio::time::sleep(pause.min(LONGEST)).await;
            pause *= 2;
        }
    }
}

/// Opens a command's gate and writes its input. Ignores a failed write, because a command may end
/// without reading all of its input.
async fn feed(mut to: ChildStdin, Text(mut payload): Text, raw: bool) {
    payload.insert(0, b'\n');
    if !raw {
        payload.push(b'\n');
    }
    let _ = to.write_all(&payload).await;
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn command_begins_only_behind_an_open_gate() {
        for (input, printed) in [("", ""), ("\n", ""), ("\npayload", "payload")] {
            let gated = format!("printf '{input}' | sh -c '{GATE}' cat").replace('\n', "\\n");
            let output = Command::new("sh").args(["-c", &gated]).output().expect("sh runs");
            assert_eq!(String::from_utf8_lossy(&output.stdout), printed, "{input:?}");
            assert_eq!(output.status.success(), !input.is_empty(), "{input:?}");
        }
    }
}
