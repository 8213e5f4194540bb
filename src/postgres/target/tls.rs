//! TLS with rustls.

use std::{fmt::Display, sync::Arc};

use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime},
};
use tracing::warn;

use super::{
    handshake::Handshake,
    revocation::RevocationLists,
    tls_files::{TlsFile, TlsFiles},
    trust::Trust,
};
use crate::error::{Error, Kind, Result};

/// The checks that are made of a server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    Nothing,
    Authority,
    /// Checks the authority, and that the certificate contains the server's name.
    AuthorityAndName,
}

/// Returns the TLS configuration. In the mode `prefer`, a client certificate at the default path is
/// ignored if it cannot be used.
pub(super) fn client_config(
    check: Check,
    is_preferred: bool,
    handshake: &Handshake,
    files: &TlsFiles,
) -> Result<ClientConfig> {
    let failed = |error: rustls::Error| Error::new(Kind::Tls(error.to_string()));
    let provider = Arc::new(ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider.clone()).with_protocol_versions(&handshake.versions);
    let verifier = match check {
        Check::Nothing => Arc::new(Unverified(provider)),
        Check::Authority => trust(false, files, provider)?,
        Check::AuthorityAndName => trust(true, files, provider)?,
    };
    let builder = versions.map_err(failed)?.dangerous().with_custom_certificate_verifier(verifier);
    let with_identity = files.certificate.as_ref().map(|certificate| {
        let (certificates, key) = identity(certificate, files.key.as_ref())?;
        let config = builder.clone().with_client_auth_cert(certificates, key);
        config.map_err(|error| certificate.error(format!("it cannot be used with the key of sslkey: {error}")))
    });
    let mut config = match with_identity {
        None => builder.with_no_client_auth(),
        Some(Err(error)) if is_preferred && files.certificate.as_ref().is_some_and(|file| file.is_default) => {
            warn!(%error, "the client's certificate is not used");
            builder.with_no_client_auth()
        }
        Some(config) => config?,
    };
    config.enable_sni = handshake.sends_name;
    Ok(config)
}

fn identity(
    certificate: &TlsFile,
    key: Option<&TlsFile>,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let certificates = certificate.certificates()?;
    let key = key.ok_or_else(|| {
        certificate
            .error("there is no key for it: name it with sslkey=FILE, or write it to ~/.postgresql/postgresql.key")
    })?;
    Ok((certificates, key.key()?))
}

/// Returns a verifier that trusts only servers with a certificate from a trusted authority.
fn trust(by_name: bool, files: &TlsFiles, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>> {
    let (mut roots, mut trusted) = (RootCertStore::empty(), Vec::new());
    if let Some(file) = &files.root {
        trusted = file.certificates()?;
        for certificate in &trusted {
            roots.add(certificate.clone()).map_err(|error| file.error(error))?;
        }
    } else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            let text = "the system has no certificate authorities; name one with sslrootcert=FILE";
            return Err(Error::new(Kind::Tls(text.to_owned())));
        }
    }
    let lists = files.revocation_lists()?;
    let invalid = |error: &dyn Display| match &files.revoked {
        Some(file) => file.error(error),
        None => Error::new(Kind::Tls(error.to_string())),
    };
    let revoked = RevocationLists::parse(&lists).map_err(|error| invalid(&error))?;
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .with_crls(lists)
        .enforce_revocation_expiration()
        .build()
        .map_err(|error| invalid(&error))?;
    Ok(Arc::new(Trust { verifier, trusted, revoked, by_name }))
}

/// A verifier that accepts every server, like libpq's `sslmode=require` without a root certificate.
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
