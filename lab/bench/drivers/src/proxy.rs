use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    time::Duration,
};

use trunkline_embedded::{DelayProxy, Upstream};

use crate::{Failure, place::Place};

/// A process that delays what goes through it, so that its processor time is nobody's; it ends with
/// this value.
pub struct Far {
    pub place: Place,
    child: Child,
}

/// The word that makes this program such a process.
pub const VERB: &str = "delay";

impl Far {
    /// The same server, so far away, each way.
    pub fn start(place: &Place, delay: Duration) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([VERB, &format!("{}:{}", place.host, place.port), &delay.as_micros().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("the proxy has no output")?).read_line(&mut line)?;
        let port = line.trim().parse().map_err(|_| "the proxy did not start")?;
        Ok(Self { place: Place { host: "127.0.0.1".to_owned(), port, ..place.clone() }, child })
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Delays until the input ends, which is when the one who started it goes.
pub fn serve(upstream: &str, delay: Duration) -> Result<(), Failure> {
    let proxy = DelayProxy::start("127.0.0.1:0", upstream.parse::<Upstream>()?, delay)?;
    println!("{}", proxy.addr().port());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
