//! Verification of servers as in libpq: by the authority only, or by the authority and the name.

use std::{fmt::Write, sync::Arc};

use rustls::{
    AlertDescription, CertificateError, DigitallySignedStruct, Error, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};
use x509_cert::{
    Certificate,
    der::{Decode, oid::ObjectIdentifier},
};

use super::revocation::RevocationLists;

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const OTHER_NAMES: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.17");

/// The verifier of rustls, extended to accept certificates that libpq accepts but rustls rejects.
#[derive(Debug)]
pub(super) struct Trust {
    pub verifier: Arc<WebPkiServerVerifier>,
    /// The certificates in `sslrootcert`. A self-signed certificate of a server may be among them.
    pub trusted: Vec<CertificateDer<'static>>,
    pub revoked: RevocationLists,
    /// True if the certificate must contain the server's name, as with `sslmode=verify-full`.
    pub by_name: bool,
}

impl Trust {
    /// Checks that the certificate contains the requested name, if `by_name` is true.
    fn verify_name(&self, certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<(), Error> {
        if !self.by_name {
            return Ok(());
        }
        let known = verify_server_name(&ParsedCertificate::try_from(certificate)?, name);
        if known.is_err() && is_common_name(certificate, name) { Ok(()) } else { known }
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.verifier.verify_server_cert(certificate, intermediates, name, ocsp_response, now) {
            Ok(verified) => return Ok(verified),
            // Ignores the name. Rustls checks it last, so all other checks have succeeded.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => {}
            Err(error) if is_about_revocation(&error) => return Err(error),
            // Accepts a certificate that is itself in `sslrootcert`, which rustls rejects.
            Err(_) if self.trusted.iter().any(|trusted| trusted == certificate) => {
                let certificate = Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
                verify_time(&certificate, now)?;
                self.revoked.verify(&certificate, now)?;
            }
            Err(error) => return Err(error),
        }
        self.verify_name(certificate, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

fn is_about_revocation(error: &Error) -> bool {
    use CertificateError::{ExpiredRevocationList, ExpiredRevocationListContext, Revoked, UnknownRevocationStatus};
    matches!(
        error,
        Error::InvalidCertRevocationList(_)
            | Error::InvalidCertificate(
                Revoked | UnknownRevocationStatus | ExpiredRevocationList | ExpiredRevocationListContext { .. }
            )
    )
}

fn verify_time(certificate: &Certificate, now: UnixTime) -> Result<(), Error> {
    let validity = certificate.tbs_certificate.validity;
    if now.as_secs() < validity.not_before.to_unix_duration().as_secs() {
        return Err(CertificateError::NotValidYet.into());
    }
    if now.as_secs() > validity.not_after.to_unix_duration().as_secs() {
        return Err(CertificateError::Expired.into());
    }
    Ok(())
}

/// Returns true if the certificate contains no alternative names, and its common name is the
/// requested name. libpq accepts such a certificate.
fn is_common_name(certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> bool {
    let Ok(certificate) = Certificate::from_der(certificate) else { return false };
    let of_certificate = certificate.tbs_certificate;
    if of_certificate.extensions.iter().flatten().any(|extension| extension.extn_id == OTHER_NAMES) {
        return false;
    }
    let name = name.to_str();
    let attributes = of_certificate.subject.0.iter().flat_map(|names| names.0.iter());
    let mut common = attributes.filter(|attribute| attribute.oid == COMMON_NAME);
    common.any(|common| std::str::from_utf8(common.value.value()).is_ok_and(|common| is_same(common, &name)))
}

/// Compares names and ignores case. In a pattern, `*.` matches exactly one label.
fn is_same(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix("*.") {
        Some(domain) => {
            name.split_once('.').is_some_and(|(label, rest)| !label.is_empty() && rest.eq_ignore_ascii_case(domain))
        }
        None => pattern.eq_ignore_ascii_case(name),
    }
}

/// Returns an explanation with advice, if the failure concerns a certificate.
pub(crate) fn explained(error: &std::io::Error) -> Option<String> {
    let why = match error.get_ref()?.downcast_ref::<Error>()? {
        Error::InvalidCertificate(why) => why,
        Error::AlertReceived(alert) => return refused_by_server(*alert),
        _ => return None,
    };
    let mut text = match why {
        CertificateError::UnknownIssuer => {
            "the server's certificate is not signed by a trusted authority: name the authority's certificate with sslrootcert=FILE"
                .to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the server's certificate is not for this name; sslmode=verify-ca trusts its authority whatever the name"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet, by this machine's clock".to_owned()
        }
        CertificateError::Revoked => "the server's certificate was revoked, by a list of sslcrl".to_owned(),
        CertificateError::UnknownRevocationStatus => {
            "the revocation lists do not cover the server's certificate: sslcrl=FILE has to contain a current list of each of its authorities"
                .to_owned()
        }
        CertificateError::ExpiredRevocationList | CertificateError::ExpiredRevocationListContext { .. } => {
            "a revocation list has expired: write a current one to the file of sslcrl".to_owned()
        }
        CertificateError::Other(_) => {
            return Some(
                "the server's certificate cannot be trusted; one that is an authority's own has to be in sslrootcert itself".to_owned(),
            );
        }
        _ => return None,
    };
    let _ = write!(text, " ({why})");
    Some(text)
}

/// Returns an explanation of the alert with which a server rejects the client's certificate.
fn refused_by_server(alert: AlertDescription) -> Option<String> {
    use AlertDescription::{
        AccessDenied, BadCertificate, CertificateExpired, CertificateRequired, CertificateRevoked, CertificateUnknown,
        DecryptError, UnknownCA, UnsupportedCertificate,
    };
    let text = match alert {
        CertificateRequired => "the server requires a certificate of the client: name it with sslcert and sslkey",
        UnknownCA => "the server does not know the authority that has signed the certificate of sslcert",
        CertificateExpired => "the certificate of sslcert has expired",
        CertificateRevoked => "the certificate of sslcert was revoked",
        AccessDenied | BadCertificate | CertificateUnknown | DecryptError | UnsupportedCertificate => {
            "the server does not accept the certificate of sslcert"
        }
        _ => return None,
    };
    Some(format!("{text} ({alert:?})"))
}

#[cfg(test)]
mod tests {
    use super::is_same;

    #[test]
    fn a_star_stands_for_one_label() {
        for (pattern, name) in [("db.example.org", "DB.example.org"), ("*.example.org", "db.example.org")] {
            assert!(is_same(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("*.example.org", "a.db.example.org"),
            ("*.example.org", ".example.org"),
            ("*.example.org", "example.org"),
            ("*", "db"),
            ("d*.example.org", "db.example.org"),
            ("", "db"),
        ] {
            assert!(!is_same(pattern, name), "{pattern} {name}");
        }
    }
}
