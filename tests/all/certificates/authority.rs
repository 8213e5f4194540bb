//! An authority that signs certificates and revokes them.

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DistinguishedName, DnType,
    IsCa, KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber, date_time_ymd,
};

pub struct Authority(CertifiedIssuer<'static, KeyPair>);

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key is made");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate is made"))
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Returns a client's certificate and its key.
    pub fn issue(&self, name: &str) -> (String, String) {
        self.sign(&named(name))
    }

    /// Returns a certificate for `localhost` and its key.
    pub fn issue_to_server(&self, serial: u64) -> (String, String) {
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        params.serial_number = Some(SerialNumber::from(serial));
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> (String, String) {
        let key = KeyPair::generate().expect("a key is made");
        let certificate = params.signed_by(&key, &self.0).expect("signed");
        (certificate.pem(), key.serialize_pem())
    }

    /// Returns a list that revokes these certificates and is valid until this year.
    pub fn list(&self, serials: &[u64], until: i32) -> String {
        let revoked = |serial: &u64| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: date_time_ymd(2019, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2019, 1, 1),
            next_update: date_time_ymd(until, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.0).expect("signed").pem().expect("written")
    }
}
