//! TLS through rustls, when the connection string asks for it, with libpq's meaning of `sslmode`.

use std::sync::Arc;

use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use tokio_postgres::{
    Config, Socket,
    config::{Host, SslMode},
    tls::MakeTlsConnect,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{Error, Kind, Result};

/// How to connect: the parsed connection string and its TLS.
#[derive(Clone)]
pub(crate) struct Target {
    pub config: Config,
    pub tls: MakeTls,
}

impl Target {
    /// `sslmode=require` encrypts, `verify-full` also checks the certificate against the system's authorities or
    /// `sslrootcert`. `tokio_postgres` knows neither `verify-full` nor `sslrootcert`, so they are taken out before.
    pub fn parse(url: &str) -> Result<Self> {
        let (url, mode) = take_option(url, "sslmode");
        let (url, root) = take_option(&url, "sslrootcert");
        let mut config: Config = url.parse().map_err(|e: tokio_postgres::Error| {
            Error::invalid(format!("the connection string is not valid: {}", full(&e)))
        })?;
        let verify = match mode.as_deref() {
            None | Some("prefer" | "allow") => false,
            Some("disable") => {
                config.ssl_mode(SslMode::Disable);
                false
            }
            Some("require") => {
                config.ssl_mode(SslMode::Require);
                root.is_some()
            }
            Some("verify-full" | "verify-ca") => {
                config.ssl_mode(SslMode::Require);
                true
            }
            Some(other) => {
                return Err(Error::invalid(format!(
                    "sslmode={other} is not known: use disable, prefer, require or verify-full"
                )));
            }
        };
        if config.get_application_name().is_none() {
            config.application_name("trunkline");
        }
        if config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_))) {
            config.ssl_mode(SslMode::Disable);
        }
        Ok(Self { config, tls: MakeTls(MakeRustlsConnect::new(client_config(verify, root.as_deref())?)) })
    }
}

/// Rustls for every host, sockets included: those have no name, and never get as far as TLS.
#[derive(Clone)]
pub(crate) struct MakeTls(MakeRustlsConnect);

impl MakeTlsConnect<Socket> for MakeTls {
    type Stream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;
    type TlsConnect = <MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect;
    type Error = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<Self::TlsConnect, Self::Error> {
        let host = if host.is_empty() { "localhost" } else { host };
        MakeTlsConnect::<Socket>::make_tls_connect(&mut self.0, host)
    }
}

fn full(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Takes `name=value` out of a URL's query or a list of words.
fn take_option(url: &str, name: &str) -> (String, Option<String>) {
    let (head, options, separator) = if url.contains("://") {
        match url.split_once('?') {
            Some((head, query)) => (head, query, '&'),
            None => return (url.to_owned(), None),
        }
    } else {
        ("", url, ' ')
    };
    let mut value = None;
    let kept: Vec<&str> = options
        .split(separator)
        .filter(|option| match option.split_once('=') {
            Some((key, found)) if key.trim() == name => {
                value = Some(found.trim().trim_matches('\'').replace("%2F", "/").replace("%2f", "/"));
                false
            }
            _ => true,
        })
        .collect();
    let kept = kept.join(&separator.to_string());
    let rest = match (head, kept.as_str()) {
        ("", options) => options.to_owned(),
        (head, "") => head.to_owned(),
        (head, options) => format!("{head}?{options}"),
    };
    (rest, value)
}

fn client_config(verify: bool, root: Option<&str>) -> Result<ClientConfig> {
    let failed = |text: String| Error::new(Kind::Tls(text));
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| failed(e.to_string()))?;
    if !verify {
        return Ok(builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Unverified(provider)))
            .with_no_client_auth());
    }
    let mut roots = RootCertStore::empty();
    if let Some(path) = root {
        let certificates = CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|e| failed(format!("sslrootcert={path}: {e}")))?;
        for certificate in certificates {
            roots.add(certificate).map_err(|e| failed(format!("sslrootcert={path}: {e}")))?;
        }
    } else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    if roots.is_empty() {
        return Err(failed("no certificate authority was found; name one with sslrootcert=FILE".to_owned()));
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Encrypts without asking who the server is: libpq's `sslmode=require` without a root certificate.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::take_option;

    #[test]
    fn an_option_leaves_a_url_or_a_list_of_words() {
        for (from, rest, value) in [
            ("postgres://h/d?sslmode=require", "postgres://h/d", Some("require")),
            ("postgres://h/d?a=b&sslmode=require&c=d", "postgres://h/d?a=b&c=d", Some("require")),
            ("postgres://h/d", "postgres://h/d", None),
            ("host=h sslmode=verify-full dbname=d", "host=h dbname=d", Some("verify-full")),
            ("host=h dbname=d", "host=h dbname=d", None),
        ] {
            let (left, found) = take_option(from, "sslmode");
            assert_eq!((left.as_str(), found.as_deref()), (rest, value), "{from}");
        }
    }
}
