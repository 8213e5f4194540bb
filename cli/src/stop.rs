//! SIGINT and SIGTERM: the first asks for an orderly end, the second ends.

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

use crate::error::{Error, Result};

/// Whether a signal has asked for the end.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// From now on signals are noted here.
    pub fn on_signals() -> Result<Self> {
        Self::on_signals_and_then(|| ())
    }

    /// The same; the second signal does something more before it ends the program.
    pub fn on_signals_and_then(last: impl Fn() + Send + 'static) -> Result<Self> {
        let listen = |kind| signal(kind).map_err(|cause| Error::new(format!("cannot wait for signals: {cause}")));
        let (interrupt, terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        let (asked, stop) = watch::channel(false);
        tokio::spawn(note(interrupt, terminate, asked, last));
        Ok(Self(stop))
    }

    pub fn is_asked(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when the end was asked for.
    pub async fn asked(&mut self) {
        if self.0.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await; // nobody notes signals any more, so none will come
        }
    }
}

async fn note(mut interrupt: Signal, mut terminate: Signal, asked: watch::Sender<bool>, last: impl Fn()) {
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        if asked.send_replace(true) {
            last();
            std::process::exit(130);
        }
    }
}
