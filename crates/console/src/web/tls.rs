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
use tracing::{info, warn};

/// The minimum interval between two checks of the files for changes.
const LOOK: Duration = Duration::from_secs(1);

/// A certificate and its key, in PEM files.
#[derive(Debug)]
pub struct Certificate {
    chain: PathBuf,
    key: PathBuf,
    last: Mutex<Last>,
}

/// The modification times of both files.
type Changed = [Option<SystemTime>; 2];

/// The latest configuration, and the modification times of its files.
struct Last {
    config: Arc<ServerConfig>,
    changed: Changed,
    /// The modification times of the files that were refused last.
    refused: Option<Changed>,
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
        let last = Mutex::new(Last { config, changed, refused: None, looked: Instant::now() });
        Ok(Self { chain: certificate, key, last })
    }

    /// Returns an acceptor with the current contents of the files. Invalid files, for example
    /// half-written ones, change nothing, and are logged once.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.looked.elapsed() >= LOOK {
            last.looked = Instant::now();
            let changed = [changed(&self.chain), changed(&self.key)];
            if changed != last.changed {
                self.renew(&mut last, changed);
            }
        }
        TlsAcceptor::from(Arc::clone(&last.config))
    }

    fn renew(&self, last: &mut Last, changed: Changed) {
        match read(&self.chain, &self.key) {
            Ok(config) => {
                info!("the certificate was renewed");
                (last.config, last.changed, last.refused) = (config, changed, None);
            }
            Err(why) if last.refused != Some(changed) => {
                warn!(%why, "the certificate was not renewed: the console continues with the previous one");
                last.refused = Some(changed);
            }
            Err(_) => {}
        }
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

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use tracing::{
        Event, Metadata, Subscriber,
        field::{Field, Visit},
        span::{Attributes, Id, Record},
    };

    use super::*;

    /// Collects the fields of all events.
    #[derive(Clone, Default)]
    struct Logged(Arc<Mutex<String>>);

    impl Visit for Logged {
        fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
            let _ = write!(self.0.lock().expect("no panic"), "{field}={value:?} "); // cannot fail
        }
    }

    impl Subscriber for Logged {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn event(&self, event: &Event<'_>) {
            event.record(&mut self.clone());
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn renewal_that_fails_is_logged_once() {
        let folder = std::env::temp_dir().join(format!("trunkline-console-renewal-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let (chain, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).expect("made");
        let renew = |pem: &str, seconds: u64| {
            fs::write(&key, signing_key.serialize_pem()).expect("written");
            fs::write(&chain, pem).expect("written");
            let file = fs::File::options().write(true).open(&chain).expect("opened");
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).expect("changed");
        };
        renew(&cert.pem(), 1);
        let certificate = Certificate::of_files(&chain, &key).expect("read");
        let logged = Logged::default();
        let _on = tracing::subscriber::set_default(logged.clone());
        let look = || {
            certificate.last.lock().expect("no panic").looked -= LOOK;
            certificate.acceptor();
            std::mem::take(&mut *logged.0.lock().expect("no panic"))
        };
        assert_eq!(look(), "");
        renew("half a file", 2);
        let why = look();
        assert!(why.contains("cert.pem") && why.contains("the certificate was not renewed"), "{why}");
        assert_eq!(look(), "", "once for each change");
        renew(&cert.pem(), 3);
        let is = look();
        assert!(is.contains("the certificate was renewed"), "{is}");
        assert_eq!(look(), "");
        fs::remove_dir_all(&folder).expect("removed");
    }
}
