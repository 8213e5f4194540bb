use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    time::Duration,
};

use trunkline_embedded::{DelayProxy, Upstream};

use crate::{Failure, place::Place};

/// A process that delays the traffic to a server. A separate process keeps the proxy's processor
/// time out of the client's. The process ends when this value is dropped.
pub struct Far {
    pub place: Place,
    child: Child,
}

/// The subcommand that runs this program as the delaying process.
pub const VERB: &str = "delay";

impl Far {
    /// Starts a process that delays the traffic to the server by `delay` in each direction.
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

/// Delays until standard input ends, which happens when the parent process exits.
pub fn serve(upstream: &str, delay: Duration) -> Result<(), Failure> {
    let proxy = DelayProxy::start("127.0.0.1:0", upstream.parse::<Upstream>()?, delay)?;
    println!("{}", proxy.addr().port());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
