//! TLS from files that hold a certificate and its key. The console reads the files again when they
//! change, so that a renewed certificate needs no restart.

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

/// The minimum interval between two checks of the files for changes.
const LOOK: Duration = Duration::from_secs(1);

/// A certificate and its key, in PEM files.
#[derive(Debug)]
pub struct Certificate {
    chain: PathBuf,
    key: PathBuf,
    last: Mutex<Last>,
}

/// The latest configuration, and the modification times of its files.
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
    /// Reads both files. The first file contains the certificate, followed by the chain up to a
    /// certificate that visitors trust.
    ///
    /// # Errors
    /// If a file cannot be read, or if the key does not belong to the certificate. The error names
    /// the file.
    pub fn of_files(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> io::Result<Self> {
        let (certificate, key) = (certificate.into(), key.into());
        let changed = [changed(&certificate), changed(&key)];
        let config = read(&certificate, &key)?;
        let last = Mutex::new(Last { config, changed, looked: Instant::now() });
        Ok(Self { chain: certificate, key, last })
    }

    /// Returns an acceptor with the current contents of the files. Invalid files, for example
    /// half-written ones, change nothing.
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
        return Err(of(certificate, &"the file contains no certificate"));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|why| of(key, &why))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret))
        .map_err(|why| of(key, &format!("it does not match {}: {why}", certificate.display())))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
