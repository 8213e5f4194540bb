//! `trunkline delay-proxy`: makes a server seem far away.

use std::time::Duration;

use trunkline_embedded::{DelayProxy, Upstream};

use crate::{
    error::{Error, Result},
    print,
    stop::Stop,
    time,
};

/// The arguments of `trunkline delay-proxy`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "\
trunkline delay-proxy [OPTIONS] <LISTEN> <HOST> <PORT> <MILLISECONDS>
       trunkline delay-proxy [OPTIONS] <LISTEN> <HOST:PORT> <MILLISECONDS>")]
#[command(after_help = "\
Example, a database two milliseconds of round trip away:
  trunkline delay-proxy 15432 localhost 5432 1
  PGHOST=127.0.0.1 PGPORT=15432 psql

It forwards every byte unread, so TLS and passwords work as they do without it. But the server sees
connections from this program: `peer` authentication finds the user who runs the proxy, and if SERVER
is a folder there is no TLS (sslmode=disable or prefer). For sslmode=verify-full, keep the server's
name and add the proxy's address:
  psql \"host=db.example.org hostaddr=127.0.0.1 port=15432 sslmode=verify-full\"")]
pub struct Args {
    /// The address to listen on: a port of 127.0.0.1 (0 is any free one), or HOST:PORT
    #[arg(value_name = "LISTEN", value_parser = listen)]
    listen: String,
    /// The server: HOST PORT or HOST:PORT, or a folder instead of the host if its socket is in a
    /// folder (/var/run/postgresql 5432)
    #[arg(value_name = "SERVER", required = true, num_args = 1..=2, allow_negative_numbers = true)]
    server: Vec<String>,
    /// The delay in each direction; fractions and other units are possible (1s)
    #[arg(value_name = "MILLISECONDS", value_parser = milliseconds, allow_negative_numbers = true)]
    delay: Duration,
}

pub async fn run(Args { listen, server, delay }: Args) -> Result<()> {
    let mut stop = Stop::on_signals()?;
    let proxy = crate::blocking(move || start(&listen, &place(&server), delay)).await?;
    stop.asked().await;
    crate::blocking(move || {
        drop(proxy);
        Ok(())
    })
    .await
}

fn start(listen: &str, server: &str, delay: Duration) -> Result<DelayProxy> {
    let server: Upstream = server.parse()?;
    if let Err(cause) = server.check() {
        print::note(format!("warning: {cause}; until the server can be reached, connections are closed"));
    }
    let proxy = DelayProxy::start(listen, server.clone(), delay)
        .map_err(|cause| Error::new(cause.to_string()).hint("choose another port, or 0 for any that is free"))?;
    let addr = proxy.addr();
    let host = if addr.ip().is_unspecified() { "127.0.0.1".to_owned() } else { addr.ip().to_string() };
    let (port, millis) = (addr.port(), delay.as_nanos() as f64 / 1e6);
    print::if_open(print::line(format!(
        "listening on {addr}, {millis} ms each way to {server}: PGHOST={host} PGPORT={port}, or \
         psql \"host={host} port={port}\""
    )))?;
    Ok(proxy)
}

fn place(words: &[String]) -> String {
    match words {
        [host, port] if host.contains(':') && !host.starts_with(['[', '/']) => format!("[{host}]:{port}"),
        words => words.join(":"),
    }
}

fn listen(text: &str) -> Result<String, String> {
    let is_port = |text: &str| text.parse::<u16>().is_ok();
    match text.rsplit_once(':') {
        None if is_port(text) => Ok(format!("127.0.0.1:{text}")),
        Some((host, port)) if !host.is_empty() && is_port(port) => Ok(text.to_owned()),
        _ => Err("expected a port (15432), or an address and a port (0.0.0.0:15432)".to_owned()),
    }
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    let delay = time::in_unit(text, "milliseconds", 1e-3)?;
    if delay > Duration::from_secs(3_600) {
        return Err("expected 0 to 3,600,000 milliseconds (an hour)".to_owned());
    }
    Ok(delay)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_of_this_machine() {
        assert_eq!(listen("15432").as_deref(), Ok("127.0.0.1:15432"));
        assert_eq!(listen("[::1]:0").as_deref(), Ok("[::1]:0"));
        assert!(["", ":1", "localhost", "65536", "host:x", "-1"].iter().all(|text| listen(text).is_err()));
    }

    #[test]
    fn a_server_is_one_word_or_two() {
        let is = |words: &[&str], wanted: &str| {
            assert_eq!(place(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()), wanted);
        };
        is(&["localhost:5432"], "localhost:5432");
        is(&["localhost", "5432"], "localhost:5432");
        is(&["::1", "5432"], "[::1]:5432");
        is(&["/var/run/postgresql", "5432"], "/var/run/postgresql:5432");
    }

    #[test]
    fn milliseconds_have_fractions_and_bounds() {
        assert_eq!(milliseconds("0.25"), Ok(Duration::from_micros(250)));
        assert!(["-1", "inf", "NaN", "1e9", "soon"].iter().all(|text| milliseconds(text).is_err()));
    }
}
