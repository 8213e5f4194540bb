//! Waits until a command ends, or ends the command.

use std::{future::pending, io, os::unix::process::ExitStatusExt, process::ExitStatus, time::Duration};

use rustix::process::Signal;
use tokio::{process::Child, time::timeout};
use tokio_util::sync::CancellationToken;

use super::group::Group;

/// The time between SIGTERM and SIGKILL.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// The time limit for the output of processes that a command left behind.
pub const LEFTOVERS: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Exited(ExitStatus),
    TimedOut(Duration),
    /// The lease was lost, or the program is ending.
    GivenUp,
}

impl Ending {
    /// Waits until a command ends. Ends the command at its time limit, or if it is given up.
    pub async fn of(
        child: &mut Child,
        group: &Group,
        limit: Option<Duration>,
        give_up: [&CancellationToken; 2],
    ) -> io::Result<Self> {
        let over = async {
            match limit {
                Some(limit) => {
                    tokio::time::sleep(limit).await;
                    limit
                }
                None => pending().await,
            }
        };
        let ending = tokio::select! {
            status = child.wait() => return Ok(Self::Exited(status?)),
            limit = over => Self::TimedOut(limit),
            () = give_up[0].cancelled() => Self::GivenUp,
            () = give_up[1].cancelled() => Self::GivenUp,
        };
        group.signal(Signal::TERM);
        let all_gone = async {
            let _ = child.wait().await; // ignores the exit status, because this program ends the command
            while !group.is_gone() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if timeout(PATIENCE, all_gone).await.is_err() {
            group.signal(Signal::KILL);
            let _ = child.wait().await;
        }
        Ok(ending)
    }

    pub fn told(self) -> String {
        match self {
            Self::Exited(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("exit code {code}"),
                (None, Some(signal)) => format!("ended by signal {signal}"),
                (None, None) => status.to_string(),
            },
            Self::TimedOut(limit) => format!("took longer than {} seconds", limit.as_secs_f64()),
            Self::GivenUp => "given up".to_owned(),
        }
    }
}
