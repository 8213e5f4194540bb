use crate::error::{Error, Result};
use crate::running::USER;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The time limit for an answer, so that a stuck server does not block a test indefinitely.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// Runs one statement as the superuser, who needs no password, and discards the rows. This crate
/// needs no other statements, and therefore no client library.
pub(crate) fn say(socket: &Path, statement: &str) -> Result<()> {
    let doing = || Error::at("cannot speak to the server at", socket);
    let mut stream = UnixStream::connect(socket).map_err(doing())?;
    stream.set_read_timeout(Some(ANSWER_LIMIT)).map_err(doing())?;
    // The protocol version 3.0, the user and the database.
    let hello = [&196_608_u32.to_be_bytes()[..], b"user\0", USER.as_bytes(), b"\0database\0postgres\0\0"].concat();
    send(&mut stream, &[], &hello).map_err(doing())?;
    until_ready(&mut stream, "the session").map_err(doing())??;
    send(&mut stream, b"Q", format!("{statement}\0").as_bytes()).map_err(doing())?;
    until_ready(&mut stream, &format!("`{statement}`")).map_err(doing())?
}

/// Sends a message: its type, if it has one, its length and its body.
fn send(stream: &mut UnixStream, kind: &[u8], body: &[u8]) -> std::io::Result<()> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    stream.write_all(&[kind, &length, body].concat())
}

/// Reads the answer to its end. The inner result is an error that the server reported.
fn until_ready(stream: &mut UnixStream, doing: &str) -> std::io::Result<Result<()>> {
    let mut outcome = Ok(());
    loop {
        let mut head = [0; 5];
        match stream.read_exact(&mut head) {
            Err(_) if outcome.is_err() => return Ok(outcome), // a fatal error ends the session
            read => read?,
        }
        let [kind, length @ ..] = head;
        let mut body = vec![0; (u32::from_be_bytes(length) as usize).saturating_sub(4)];
        stream.read_exact(&mut body)?;
        match kind {
            b'Z' => return Ok(outcome),
            b'E' => outcome = Err(Error::new(format!("the server refuses {doing}: {}", reason(&body)))),
            _ => {}
        }
    }
}

/// Returns the human-readable field of an error. Each field starts with a letter and ends with a
/// zero byte.
fn reason(body: &[u8]) -> String {
    let mut fields = body.split(|byte| *byte == 0);
    let text = fields.find_map(|field| field.strip_prefix(b"M")).unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_the_server_says() {
        assert_eq!(
            reason(b"SERROR\0VERROR\0C42P04\0Mdatabase \"x\" already exists\0\0"),
            "database \"x\" already exists"
        );
        assert_eq!(reason(b"\0"), "");
    }
}
