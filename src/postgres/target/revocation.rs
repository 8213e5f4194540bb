//! Revocation lists for certificates that libpq accepts but rustls does not accept.

use rustls::{
    CertificateError,
    pki_types::{CertificateRevocationListDer, UnixTime},
};
use x509_cert::{
    Certificate,
    crl::CertificateList,
    der::{Decode, Error as InvalidDer},
};

/// The revocation lists of `sslcrl`. The signatures of the lists are not checked, because the user
/// provides the file, as with the file of trusted authorities.
#[derive(Debug, Default)]
pub(super) struct RevocationLists(Vec<CertificateList>);

impl RevocationLists {
    pub fn parse(lists: &[CertificateRevocationListDer<'_>]) -> Result<Self, InvalidDer> {
        lists.iter().map(|list| CertificateList::from_der(list)).collect::<Result<_, _>>().map(Self)
    }

    /// Returns an error if the issuer of the certificate has revoked it. If there are any lists,
    /// one of them must come from this issuer, as in libpq.
    pub fn verify(&self, certificate: &Certificate, now: UnixTime) -> Result<(), CertificateError> {
        let certificate = &certificate.tbs_certificate;
        let mut is_known = self.0.is_empty();
        for list in self.0.iter().map(|list| &list.tbs_cert_list).filter(|list| list.issuer == certificate.issuer) {
            if list.revoked_certificates.iter().flatten().any(|one| one.serial_number == certificate.serial_number) {
                return Err(CertificateError::Revoked);
            }
            if list.next_update.is_some_and(|next| next.to_unix_duration().as_secs() < now.as_secs()) {
                return Err(CertificateError::UnknownRevocationStatus);
            }
            // A list with a critical extension may cover only some of the issuer's certificates.
            is_known |= list.crl_extensions.iter().flatten().all(|extension| !extension.critical);
        }
        if is_known { Ok(()) } else { Err(CertificateError::UnknownRevocationStatus) }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, CertificateRevocationListParams, Issuer, KeyIdMethod, KeyPair, SerialNumber};

    use super::*;

    fn now() -> UnixTime {
        UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_700_000_000)) // in 2023
    }

    #[test]
    fn an_authoritys_own_certificate_is_looked_up_too() {
        let key = KeyPair::generate().expect("a key is made");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.serial_number = Some(SerialNumber::from(7));
        let certificate = params.self_signed(&key).expect("signed");
        let certificate = Certificate::from_der(certificate.der()).expect("valid");
        let mut other = params.clone();
        other.distinguished_name.push(rcgen::DnType::CommonName, "other");
        let list = |of: &CertificateParams, serial, until| {
            let revoked = rcgen::RevokedCertParams {
                serial_number: SerialNumber::from(serial),
                revocation_time: rcgen::date_time_ymd(2020, 1, 1),
                reason_code: None,
                invalidity_date: None,
            };
            let params = CertificateRevocationListParams {
                this_update: rcgen::date_time_ymd(2020, 1, 1),
                next_update: rcgen::date_time_ymd(until, 1, 1),
                crl_number: SerialNumber::from(1),
                issuing_distribution_point: None,
                revoked_certs: vec![revoked],
                key_identifier_method: KeyIdMethod::Sha256,
            };
            params.signed_by(&Issuer::from_params(of, &key)).expect("signed").der().clone()
        };
        let unknown = Err(CertificateError::UnknownRevocationStatus);
        for (lists, verified) in [
            (vec![], Ok(())),
            (vec![list(&params, 8_u64, 2999)], Ok(())),
            (vec![list(&params, 7, 2999)], Err(CertificateError::Revoked)),
            (vec![list(&params, 8, 2999), list(&params, 7, 2999)], Err(CertificateError::Revoked)),
            (vec![list(&params, 8, 2021)], unknown.clone()),
            (vec![list(&other, 7, 2999)], unknown),
        ] {
            let lists = RevocationLists::parse(&lists).expect("valid");
            assert_eq!(lists.verify(&certificate, now()), verified, "{lists:?}");
        }
    }
}
