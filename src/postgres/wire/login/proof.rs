//! Authentication with the method that the server requests.

use std::io::{
    self,
    ErrorKind::{InvalidData, PermissionDenied},
};

use bytes::Bytes;
use postgres_protocol::{
    authentication::{
        md5_hash,
        sasl::{ChannelBinding as Binding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256},
    },
    message::frontend,
};
use tokio_postgres::{Config, config::ChannelBinding};

use super::{
    binding::binding,
    exchange::{Exchange, failed, unexpected},
};
use crate::error::{Error, Result};

const OK: u32 = 0;
const CLEARTEXT: u32 = 3;
const MD5: u32 = 5;
const SASL: u32 = 10;
const SASL_CONTINUE: u32 = 11;
const SASL_FINAL: u32 = 12;

/// The maximum number of iterations of a SCRAM login. The server's default is 4,096
/// (`scram_iterations`).
const ITERATIONS: u32 = 1_000_000;

/// Authenticates. Returns `Ok` when the server has accepted the login.
pub(super) async fn prove(exchange: &mut Exchange, config: &Config, user: &str) -> Result<()> {
    let (asked, rest) = exchange.authentication().await?;
    if asked == SASL {
        scram(exchange, config, &rest).await?;
    } else if must_bind(config) {
        // Refuses other authentications, because only channel binding can distinguish the server
        // from a proxy that forwards its messages.
        let text = format!("channel_binding=require needs SCRAM over TLS, and the server asks for {}", called(asked));
        return Err(failed(PermissionDenied, text));
    } else {
        match asked {
            OK => return Ok(()),
            CLEARTEXT => tell(exchange, password(config)?)?,
            MD5 => {
                let salt = rest.first_chunk().ok_or_else(|| unexpected(b'R'))?;
                let hash = md5_hash(user.as_bytes(), password(config)?, *salt);
                tell(exchange, hash.as_bytes())?;
            }
            other => {
                let text = format!(
                    "the server requires {}, which is not supported: use a password method in pg_hba.conf",
                    called(other)
                );
                return Err(failed(PermissionDenied, text));
            }
        }
        exchange.send().await?;
    }
    match exchange.authentication().await? {
        (OK, _) => Ok(()),
        _ => Err(unexpected(b'R')),
    }
}

fn tell(exchange: &mut Exchange, proof: &[u8]) -> Result<()> {
    frontend::password_message(proof, &mut exchange.write).map_err(|error| unwritable(&error))
}

/// Proves that the client knows the password, without sending the password. The server must prove
/// that it knows the password too.
async fn scram(exchange: &mut Exchange, config: &Config, offered: &[u8]) -> Result<()> {
    let offers = |mechanism: &str| offered.split(|byte| *byte == 0).any(|name| name == mechanism.as_bytes());
    let wanted = config.get_channel_binding() != ChannelBinding::Disable;
    let (mechanism, bound) = match binding(&exchange.stream).filter(|_| wanted) {
        Some(hash) if offers(SCRAM_SHA_256_PLUS) => (SCRAM_SHA_256_PLUS, Binding::tls_server_end_point(hash)),
        // If the server offered channel binding and a proxy removed the offer, this flag lets the
        // server detect the proxy.
        Some(_) => (SCRAM_SHA_256, Binding::unrequested()),
        None => (SCRAM_SHA_256, Binding::unsupported()),
    };
    if mechanism != SCRAM_SHA_256_PLUS && must_bind(config) {
        return Err(failed(
            PermissionDenied,
            "channel_binding=require needs TLS, a certificate that can be bound to, and a server that offers it",
        ));
    }
    if !offers(mechanism) {
        let offered = String::from_utf8_lossy(offered).replace('\0', " ");
        return Err(failed(PermissionDenied, format!("the server knows only {}, not {mechanism}", offered.trim_end())));
    }
    let mut scram = ScramSha256::new(password(config)?, bound);
    frontend::sasl_initial_response(mechanism, scram.message(), &mut exchange.write)
        .map_err(|error| unwritable(&error))?;
    let challenge = answer(exchange, SASL_CONTINUE).await?;
    check_iterations(&challenge)?;
    scram.update(&challenge).map_err(|error| failed(InvalidData, format!("the server's SCRAM is wrong: {error}")))?;
    frontend::sasl_response(scram.message(), &mut exchange.write).map_err(|error| unwritable(&error))?;
    let verdict = answer(exchange, SASL_FINAL).await?;
    scram
        .finish(&verdict)
        .map_err(|error| failed(InvalidData, format!("the server did not prove that it knows the password: {error}")))
}

/// Refuses a challenge whose computation would take long, because nothing else runs on the thread
/// meanwhile.
fn check_iterations(challenge: &[u8]) -> Result<()> {
    let asked = challenge.split(|byte| *byte == b',').find_map(|part| part.strip_prefix(b"i="));
    // the login then refuses the challenge as malformed
    let Some(asked) = asked.map(String::from_utf8_lossy) else { return Ok(()) };
    match asked.parse() {
        Ok(0..=ITERATIONS) => Ok(()),
        _ => Err(failed(
            InvalidData,
            format!(
                "the server's SCRAM asks for {asked:?} iterations; at most {ITERATIONS} are accepted; lower scram_iterations, and set the password again"
            ),
        )),
    }
}

async fn answer(exchange: &mut Exchange, wanted: u32) -> Result<Bytes> {
    exchange.send().await?;
    match exchange.authentication().await? {
        (code, data) if code == wanted => Ok(data),
        _ => Err(unexpected(b'R')),
    }
}

fn must_bind(config: &Config) -> bool {
    config.get_channel_binding() == ChannelBinding::Require
}

fn password(config: &Config) -> Result<&[u8]> {
    let missing = || {
        failed(
            PermissionDenied,
            "the server asks for a password, and neither the connection string nor the environment has one",
        )
    };
    config.get_password().ok_or_else(missing)
}

fn unwritable(error: &io::Error) -> Error {
    Error::invalid(format!("the password cannot be sent: {error}"))
}

fn called(asked: u32) -> String {
    match asked {
        OK => "nothing".to_owned(),
        CLEARTEXT => "a password in clear text".to_owned(),
        MD5 => "an MD5 hash".to_owned(),
        2 => "Kerberos V5".to_owned(),
        6 => "SCM credentials".to_owned(),
        7 | 8 => "GSSAPI".to_owned(),
        9 => "SSPI".to_owned(),
        other => format!("a proof of kind {other}"),
    }
}
