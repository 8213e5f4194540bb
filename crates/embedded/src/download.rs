use crate::error::{Error, Result};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Downloads a file. Fails if its SHA-256 differs from `digest`.
pub(crate) fn download(url: &str, digest: &str, to: &Path, mut progress: impl FnMut(u64, u64)) -> Result<()> {
    let failed = |why: String| {
        Error::new(format!(
            "cannot fetch {url}: {why}. Install a PostgreSQL, or set TRUNKLINE_MAVEN_URL to a mirror of Maven Central"
        ))
    };
    let mut response = agent().get(url).call().map_err(|why| failed(why.to_string()))?;
    let all = response.body().content_length().unwrap_or(0);
    let mut body = response.body_mut().as_reader();
    let mut file = File::create(to).map_err(Error::at("cannot create", to))?;
    let (mut hash, mut done, mut buffer) = (Sha256::new(), 0, vec![0; 64 << 10]);
    loop {
        progress(done, all);
        let read = body.read(&mut buffer).map_err(|why| failed(why.to_string()))?;
        if read == 0 {
            break;
        }
        hash.update(&buffer[..read]);
        file.write_all(&buffer[..read]).map_err(Error::at("cannot write", to))?;
        done += read as u64;
    }
    let found = hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    if found == digest {
        return Ok(());
    }
    Err(failed(format!("its SHA-256 is {found}, not the expected {digest}; the file was discarded")))
}

/// Returns an HTTP client that trusts the system's certificates, so that a company's own proxy or
/// mirror works.
fn agent() -> Agent {
    let roots: Vec<Certificate<'static>> = rustls_native_certs::load_native_certs()
        .certs
        .iter()
        .map(|root| Certificate::from_der(root).to_owned())
        .collect();
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    let config = Agent::config_builder()
        .tls_config(tls)
        .timeout_connect(Some(Duration::from_secs(15)))
        .timeout_recv_response(Some(Duration::from_secs(60)))
        .timeout_recv_body(Some(Duration::from_secs(30 * 60)))
        .build();
    config.new_agent()
}
