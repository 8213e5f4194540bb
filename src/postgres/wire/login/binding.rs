//! The channel binding of a SCRAM authentication: a hash of the server's TLS certificate. It
//! reveals a proxy in the middle (RFC 5929, `tls-server-end-point`).

use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::postgres::wire::stream::Stream;

/// Returns the channel binding of a TLS stream, if the certificate's signature algorithm specifies
/// a hash.
pub(super) fn binding(stream: &Stream) -> Option<Vec<u8>> {
    let Stream::Tls(tls) = stream else { return None };
    end_point(tls.get_ref().1.peer_certificates()?.first()?)
}

/// Hashes the certificate with the hash function of its signature, but at least with SHA-256.
/// Returns `None` for Ed25519, which specifies no hash; the server does not support channel binding
/// with it either.
fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let (outer, _) = element(certificate, SEQUENCE)?;
    let (_, after_what_is_signed) = element(outer, SEQUENCE)?;
    let (algorithm, _) = element(after_what_is_signed, SEQUENCE)?;
    let (name, parameters) = element(algorithm, OBJECT_IDENTIFIER)?;
    let bits = match name {
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, rsa] => match rsa {
            4 | 5 | 11 => 256,
            12 => 384,
            13 => 512,
            10 => pss_bits(parameters)?,
            _ => return None,
        },
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1] | [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2] => 256,
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3] => 384,
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4] => 512,
        _ => return None,
    };
    Some(match bits {
        256 => Sha256::digest(certificate).to_vec(),
        384 => Sha384::digest(certificate).to_vec(),
        _ => Sha512::digest(certificate).to_vec(),
    })
}

/// Returns the hash size in bits from the RSA-PSS parameters. The default is SHA-1, which RFC 5929
/// replaces with SHA-256.
fn pss_bits(parameters: &[u8]) -> Option<u32> {
    let (parameters, _) = element(parameters, SEQUENCE)?;
    let Some((hash, _)) = element(parameters, FIRST_FIELD) else { return Some(256) };
    let (algorithm, _) = element(hash, SEQUENCE)?;
    match element(algorithm, OBJECT_IDENTIFIER)?.0 {
        [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1] | [0x2b, 0x0e, 3, 2, 0x1a] => Some(256),
        [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 2] => Some(384),
        [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 3] => Some(512),
        _ => None,
    }
}

const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const FIRST_FIELD: u8 = 0xa0;

/// Returns the content of the first DER element if its tag is `kind`, and the remaining bytes.
fn element(der: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = der.split_first()?;
    let (short, rest) = rest.split_first()?;
    let (length, rest) = match short {
        0..=0x7f => (usize::from(*short), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(short - 0x80))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    if *found == kind { rest.split_at_checked(length) } else { None }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};

    use super::*;

    #[test]
    fn a_certificate_is_hashed_by_the_hash_of_its_signature() {
        let made = [(&PKCS_ECDSA_P256_SHA256, Some(32)), (&PKCS_ECDSA_P384_SHA384, Some(48)), (&PKCS_ED25519, None)];
        for (algorithm, bytes) in made {
            let key = KeyPair::generate_for(algorithm).expect("a key is made");
            let params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
            let certificate = params.self_signed(&key).expect("signed");
            assert_eq!(end_point(certificate.der()).map(|hash| hash.len()), bytes, "{algorithm:?}");
        }
    }

    /// Returns a certificate that contains only the name of its signature algorithm.
    fn signed(algorithm: &[u8]) -> Vec<u8> {
        let length = algorithm.len() as u8;
        [&[SEQUENCE, length + 4, SEQUENCE, 0, SEQUENCE, length], algorithm].concat()
    }

    #[test]
    fn weak_hashes_are_replaced_and_unknown_ones_refused() {
        let rsa = |last: u8| [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, last];
        let pss = [&rsa(10)[..], &[0x30, 15, 0xa0, 13, 0x30, 11, 6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 3]].concat();
        for (algorithm, bytes) in [
            (rsa(4).to_vec(), Some(32)),
            (rsa(5).to_vec(), Some(32)),
            (rsa(13).to_vec(), Some(64)),
            (rsa(99).to_vec(), None),
            (pss, Some(64)),
            ([&rsa(10)[..], &[0x30, 0]].concat(), Some(32)),
            (Vec::new(), None),
        ] {
            assert_eq!(end_point(&signed(&algorithm)).map(|hash| hash.len()), bytes, "{algorithm:?}");
        }
        for broken in [&b""[..], &[0x30], &[0x30, 0x84, 255, 255, 255, 255], &[0x30, 2, 0x30, 9]] {
            assert_eq!(end_point(broken), None);
        }
    }
}
