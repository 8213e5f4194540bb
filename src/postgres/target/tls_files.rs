//! The files for TLS. Each file is named by a setting or has libpq's default path.

use std::{
    ffi::OsStr,
    fmt::Display,
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, pem, pem::PemObject};

use super::{connection_string::ConnectionString, environment::Environment};
use crate::error::{Error, Kind, Result};

/// The value of `sslrootcert` that selects the system's authorities.
const OF_SYSTEM: &str = "system";

#[derive(Debug)]
pub(super) struct TlsFile {
    setting: &'static str,
    path: PathBuf,
    /// True if no setting names the file, so that the default path is used.
    pub is_default: bool,
}

impl TlsFile {
    /// Returns the file that a setting names. If no setting names a file, returns the file at the
    /// default path if it exists.
    fn of(options: &mut ConnectionString, setting: &'static str, default: Option<PathBuf>) -> Result<Option<Self>> {
        let named = options.take(setting)?.map(|setting| setting.value).filter(|path| !path.is_empty());
        Ok(match named {
            Some(path) => Some(Self { setting, path: path.into(), is_default: false }),
            None => default.filter(|path| path.exists()).map(|path| Self { setting, path, is_default: true }),
        })
    }

    pub fn error(&self, why: impl Display) -> Error {
        Error::new(Kind::Tls(format!("{}={}: {why}", self.setting, self.path.display())))
    }

    pub fn certificates(&self) -> Result<Vec<CertificateDer<'static>>> {
        self.sections("certificate")
    }

    pub fn revocation_lists(&self) -> Result<Vec<CertificateRevocationListDer<'static>>> {
        self.sections("revocation list")
    }

    /// Reads the revocation lists in a directory that `openssl rehash` has prepared. The name of a
    /// list is the hash of its issuer, followed by `.r` and a number.
    pub fn revocation_lists_of_folder(&self) -> Result<Vec<CertificateRevocationListDer<'static>>> {
        let mut lists = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(|error| self.error(error))? {
            let path = entry.map_err(|error| self.error(error))?.path();
            if path.file_name().and_then(OsStr::to_str).is_some_and(is_name_of_list) {
                lists.extend(Self { path, setting: self.setting, is_default: false }.revocation_lists()?);
            }
        }
        if lists.is_empty() {
            return Err(self.error("the folder has no revocation list: run `openssl rehash` on it"));
        }
        Ok(lists)
    }

    /// Reads all PEM sections of one kind. Returns an error if the file has no such section.
    fn sections<T: PemObject>(&self, kind: &str) -> Result<Vec<T>> {
        let found = T::pem_file_iter(&self.path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let found = found.map_err(|error| self.error(said(error)))?;
        if found.is_empty() { Err(self.error(format!("the file has no {kind} in PEM format"))) } else { Ok(found) }
    }

    /// Reads a private key. Returns an error if other users can access its file.
    pub fn key(&self) -> Result<PrivateKeyDer<'static>> {
        let about = fs::metadata(&self.path).map_err(|error| self.error(error))?;
        if !about.is_file() {
            return Err(self.error("the private key is not a plain file"));
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            // If root owns the file, the file's group may read it.
            let others = if about.uid() == 0 { 0o037 } else { 0o077 };
            if about.mode() & others != 0 {
                return Err(self.error(format!(
                    "other users have access to the private key: run `chmod 600 {}` (a file of root may be 640)",
                    self.path.display()
                )));
            }
        }
        let bytes = fs::read(&self.path).map_err(|error| self.error(error))?;
        let is_encrypted = [&b"BEGIN ENCRYPTED PRIVATE KEY"[..], b"Proc-Type: 4,ENCRYPTED"]
            .iter()
            .any(|mark| bytes.windows(mark.len()).any(|part| part == *mark));
        if is_encrypted {
            return Err(self.error(format!("the private key is encrypted, which is not supported: {DECRYPT}")));
        }
        PrivateKeyDer::from_pem_slice(&bytes).or_else(|error| {
            PrivateKeyDer::try_from(bytes)
                .map_err(|_| self.error(format!("this is not a private key: {}", said(error))))
        })
    }
}

/// Returns true for a name like `8d28ae65.r0`.
fn is_name_of_list(name: &str) -> bool {
    let is_hex = |hash: &str| hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.split_once(".r").is_some_and(|(hash, number)| is_hex(hash) && number.parse::<u32>().is_ok())
}

const DECRYPT: &str =
    "write the key without a password, `openssl pkey -in KEY -out FILE`, then `chmod 600 FILE` and sslkey=FILE";

fn said(error: pem::Error) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => "the file has no such part in PEM format".to_owned(),
        error => error.to_string(),
    }
}

/// Parses `sslcertmode`. Returns true if the client sends its certificate on request.
fn sends_certificate(mode: &str) -> Result<bool> {
    match mode {
        "disable" => Ok(false),
        "allow" | "" => Ok(true),
        other => Err(Error::invalid(format!(
            "sslcertmode={other} is not supported: use allow or disable; pg_hba.conf on the server can require a certificate"
        ))),
    }
}

/// All TLS files that are named or exist at their default paths.
#[derive(Debug, Default)]
pub(super) struct TlsFiles {
    /// The certificates of the trusted authorities.
    pub root: Option<TlsFile>,
    /// True if the system's authorities are trusted, as with `sslrootcert=system`.
    pub is_root_of_system: bool,
    pub revoked: Option<TlsFile>,
    revoked_folder: Option<TlsFile>,
    /// The client's certificate, followed by the certificates of intermediate authorities.
    pub certificate: Option<TlsFile>,
    pub key: Option<TlsFile>,
}

impl TlsFiles {
    pub fn of(options: &mut ConnectionString, environment: Environment<'_>) -> Result<Self> {
        if options.take("sslpassword")?.is_some_and(|password| !password.value.is_empty()) {
            return Err(Error::invalid(format!("sslpassword is not supported: {DECRYPT}")));
        }
        let at_home = |name: &str| environment.file_at_home(&format!(".postgresql/{name}"), name);
        let root = TlsFile::of(options, "sslrootcert", at_home("root.crt"))?;
        let is_root_of_system = root.as_ref().is_some_and(|root| root.path.as_os_str() == OF_SYSTEM);
        let certificate = TlsFile::of(options, "sslcert", at_home("postgresql.crt"))?;
        let revoked_folder = TlsFile::of(options, "sslcrldir", None)?;
        let default_list = at_home("root.crl").filter(|_| revoked_folder.is_none());
        let sends_certificate = options.read("sslcertmode", sends_certificate)?.unwrap_or(true);
        Ok(Self {
            root: root.filter(|_| !is_root_of_system),
            is_root_of_system,
            revoked: TlsFile::of(options, "sslcrl", default_list)?,
            revoked_folder,
            certificate: certificate.filter(|_| sends_certificate),
            key: TlsFile::of(options, "sslkey", at_home("postgresql.key"))?,
        })
    }

    /// Returns the times at which the files, and those in the folder of lists, were changed.
    pub fn changed(&self) -> Vec<Option<SystemTime>> {
        let of = |path: &Path| fs::metadata(path).and_then(|about| about.modified()).ok();
        let files =
            [&self.root, &self.revoked, &self.revoked_folder, &self.certificate, &self.key].into_iter().flatten();
        let listed = self.revoked_folder.iter().filter_map(|folder| fs::read_dir(&folder.path).ok());
        let mut lists: Vec<PathBuf> = listed.flatten().flatten().map(|entry| entry.path()).collect();
        lists.sort();
        files.map(|file| of(&file.path)).chain(lists.iter().map(|path| of(path))).collect()
    }

    /// Returns the revocation lists. If no file of authorities is given, the list at the default
    /// path is ignored, as in libpq.
    pub fn revocation_lists(&self) -> Result<Vec<CertificateRevocationListDer<'static>>> {
        let applies = |list: &&TlsFile| self.root.is_some() || !list.is_default;
        let mut lists = self.revoked.as_ref().filter(applies).map_or(Ok(Vec::new()), TlsFile::revocation_lists)?;
        if let Some(folder) = &self.revoked_folder {
            lists.extend(folder.revocation_lists_of_folder()?);
        }
        Ok(lists)
    }
}
