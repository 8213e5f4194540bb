//! The choice between encrypted and unencrypted connections.

use tokio_postgres::{NoTls, config::SslMode, tls::NoTlsStream};

use super::failure::Error;
use crate::postgres::target::Target;

/// The choice between encrypted and unencrypted connections: [`NoTls`] or [`AsConfigured`].
pub trait Encryption {
    /// The type parameter of [`Connection`](super::Connection) for this choice.
    type Stream;

    /// Returns a copy of the target that uses this choice.
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "only this crate implements the trait")]
    fn applied(&self, target: &Target) -> Result<Target, Error>;
}

impl Encryption for NoTls {
    type Stream = NoTlsStream;

    #[expect(private_interfaces, reason = "only this crate implements the trait")]
    fn applied(&self, target: &Target) -> Result<Target, Error> {
        if target.config.get_ssl_mode() == SslMode::Require {
            return Err(Error::other("the settings require encryption: connect with AsConfigured instead of NoTls"));
        }
        let mut target = target.clone();
        target.config.ssl_mode(SslMode::Disable);
        Ok(target)
    }
}

/// Encryption as `sslmode` and `sslrootcert` specify it, with the same meaning as in libpq.
#[derive(Debug, Clone, Copy)]
pub struct AsConfigured;

impl Encryption for AsConfigured {
    type Stream = Self;

    #[expect(private_interfaces, reason = "only this crate implements the trait")]
    fn applied(&self, target: &Target) -> Result<Target, Error> {
        Ok(target.clone())
    }
}
