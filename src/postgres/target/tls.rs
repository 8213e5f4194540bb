//! TLS through rustls: its verifier and its trusted authorities.

use std::sync::Arc;

use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use tokio_postgres::{Socket, tls::MakeTlsConnect};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::trust::Trust;
use crate::error::{Error, Kind, Result};

/// Rustls for every host. This includes sockets, which have no name and never use TLS.
#[derive(Clone)]
pub(crate) struct MakeTls(MakeRustlsConnect);

impl MakeTls {
    pub fn new(config: ClientConfig) -> Self {
        Self(MakeRustlsConnect::new(config))
    }
}

impl MakeTlsConnect<Socket> for MakeTls {
    type Stream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;
    type TlsConnect = <MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect;
    type Error = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<Self::TlsConnect, Self::Error> {
        let host = if host.is_empty() { "localhost" } else { host };
        MakeTlsConnect::<Socket>::make_tls_connect(&mut self.0, host)
    }
}

/// The checks of a server in addition to encryption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    Nothing,
    Authority,
    /// The certificate must also contain the server's name.
    AuthorityAndName,
}

/// The value of `sslrootcert` that stands for the system's authorities.
pub(super) const OF_SYSTEM: &str = "system";

pub(super) fn client_config(check: Check, root: Option<&str>) -> Result<ClientConfig> {
    let failed = |text: String| Error::new(Kind::Tls(text));
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| failed(e.to_string()))?;
    if check == Check::Nothing {
        return Ok(builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Unverified(provider)))
            .with_no_client_auth());
    }
    let (mut roots, mut trusted) = (RootCertStore::empty(), Vec::new());
    if let Some(path) = root.filter(|root| *root != OF_SYSTEM) {
        trusted = CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|e| failed(format!("sslrootcert={path}: {e}")))?;
        for certificate in &trusted {
            roots.add(certificate.clone()).map_err(|e| failed(format!("sslrootcert={path}: {e}")))?;
        }
    } else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    if roots.is_empty() {
        return Err(failed("no certificate authority was found; name one with sslrootcert=FILE".to_owned()));
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let verifier = verifier.map_err(|e| failed(e.to_string()))?;
    let trust = Trust { verifier, trusted, by_name: check == Check::AuthorityAndName };
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(trust)).with_no_client_auth())
}

/// Encrypts without verifying the server: libpq's `sslmode=require` without a root certificate.
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
