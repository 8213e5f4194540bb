//! The choice between plain and encrypted connections.

use tokio_postgres::{NoTls, config::SslMode, tls::NoTlsStream};

use super::failure::Error;
use crate::postgres::target::Target;

/// Decides whether a connection is encrypted: [`NoTls`] or [`AsConfigured`].
pub trait Encryption {
    /// The type that names the choice in [`Connection`](super::Connection).
    type Stream;

    /// Returns the target with this choice.
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

/// Encryption according to `sslmode` and `sslrootcert`, as in libpq.
#[derive(Debug, Clone, Copy)]
pub struct AsConfigured;

impl Encryption for AsConfigured {
    type Stream = Self;

    #[expect(private_interfaces, reason = "only this crate implements the trait")]
    fn applied(&self, target: &Target) -> Result<Target, Error> {
        Ok(target.clone())
    }
}
