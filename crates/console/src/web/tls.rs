//! TLS by files that hold a certificate and its key, read again when they change: certificates are
//! renewed every few weeks, and a console is not started again for that.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

/// The files are looked at this often at most.
const LOOK: Duration = Duration::from_secs(1);

/// A certificate and its key, in files of PEM.
#[derive(Debug)]
pub struct Certificate {
    chain: PathBuf,
    key: PathBuf,
    last: Mutex<Last>,
}

/// What was read, and when the files had been changed then.
struct Last {
    config: Arc<ServerConfig>,
    changed: [Option<SystemTime>; 2],
    looked: Instant,
}

impl std::fmt::Debug for Last {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Last").field("changed", &self.changed).finish_non_exhaustive()
    }
}

impl Certificate {
    /// Reads both. The first file has the certificate, and behind it those that lead to one that
    /// visitors trust.
    ///
    /// # Errors
    /// Which file cannot be read, or that they do not belong together.
    pub fn of_files(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> io::Result<Self> {
        let (certificate, key) = (certificate.into(), key.into());
        let changed = [changed(&certificate), changed(&key)];
        let config = read(&certificate, &key)?;
        let last = Mutex::new(Last { config, changed, looked: Instant::now() });
        Ok(Self { chain: certificate, key, last })
    }

    /// With what the files hold now. Files that make no sense, as while they are written, change
    /// nothing.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.looked.elapsed() >= LOOK {
            last.looked = Instant::now();
            let changed = [changed(&self.chain), changed(&self.key)];
            if changed != last.changed
                && let Ok(config) = read(&self.chain, &self.key)
            {
                (last.config, last.changed) = (config, changed);
            }
        }
        TlsAcceptor::from(Arc::clone(&last.config))
    }
}

fn changed(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).and_then(|is| is.modified()).ok()
}

fn read(certificate: &Path, key: &Path) -> io::Result<Arc<ServerConfig>> {
    let of = |file: &Path, why: &dyn std::fmt::Display| io::Error::other(format!("{}: {why}", file.display()));
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect).map_err(|why| of(certificate, &why))?;
    if chain.is_empty() {
        return Err(of(certificate, &"there is no certificate in it"));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|why| of(key, &why))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret))
        .map_err(|why| of(key, &format!("it does not go with {}: {why}", certificate.display())))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
