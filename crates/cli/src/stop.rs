//! SIGINT, SIGTERM and SIGHUP: the first signal requests an orderly end, and the second signal ends
//! the program.

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

use crate::error::{Error, Result};

/// A receiver that reports whether a signal has asked the program to stop.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Starts watching for signals.
    pub fn on_signals() -> Result<Self> {
        Self::on_signals_and_then(|| ())
    }

    /// Starts watching for signals. The second signal runs `last`, then ends the program.
    pub fn on_signals_and_then(last: impl Fn() + Send + 'static) -> Result<Self> {
        let listen = |kind| signal(kind).map_err(|cause| Error::new(format!("cannot wait for signals: {cause}")));
        let (interrupt, terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        // `nohup` makes the program ignore SIGHUP, and a handler would undo that.
        let hangup = if is_hangup_ignored() { None } else { Some(listen(SignalKind::hangup())?) };
        let (asked, stop) = watch::channel(false);
        tokio::spawn(note(interrupt, terminate, hangup, asked, last));
        Ok(Self(stop))
    }

    #[cfg(test)]
    pub fn of(asked: watch::Receiver<bool>) -> Self {
        Self(asked)
    }

    pub fn is_asked(&self) -> bool {
        *self.0.borrow()
    }

    /// Connects to servers, unless a signal asks the program to stop: then returns `None`.
    pub async fn or_connected<R>(&mut self, connecting: impl Future<Output = Result<R>>) -> Result<Option<R>> {
        tokio::select! {
            connected = connecting => connected.map(Some),
            () = self.asked() => Ok(None),
        }
    }

    /// Waits until a signal asks the program to stop.
    pub async fn asked(&mut self) {
        if self.0.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await; // the task that watches for signals has ended
        }
    }
}

/// Returns true if SIGHUP is ignored, or if the system does not report whether it is. In both cases
/// the program leaves SIGHUP as it is.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).is_none_or(|bits| bits & 1 == 1)
}

async fn note(
    mut interrupt: Signal,
    mut terminate: Signal,
    mut hangup: Option<Signal>,
    asked: watch::Sender<bool>,
    last: impl Fn(),
) {
    loop {
        let hung_up = async {
            match &mut hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hung_up => {}
        }
        if asked.send_replace(true) {
            last();
            std::process::exit(130);
        }
    }
}
