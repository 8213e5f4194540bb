use crate::account::Account;
use crate::error::{Error, Result};
use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Returns the folder of fetched programs.
pub(crate) fn cache() -> Result<PathBuf> {
    let in_home = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    of_the_user("XDG_CACHE_HOME", in_home, "/var/cache")
}

/// Returns the default folder of a kept cluster.
pub(crate) fn data() -> Result<PathBuf> {
    let in_home = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/share" };
    of_the_user("XDG_DATA_HOME", in_home, "/var/lib").map(|folder| folder.join("postgres"))
}

/// Returns a folder of the user. Root needs a folder that another account can enter. So for root,
/// `of_root` replaces a home that is closed to other users.
fn of_the_user(variable: &str, in_home: &str, of_root: &str) -> Result<PathBuf> {
    let account = Account::of_the_server()?;
    let set = |name| env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    if let Some(folder) = set(variable).or_else(|| Some(set("HOME")?.join(in_home))) {
        let there = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
        if !account.is_dropped_to() || account.can_enter(there)? {
            return Ok(folder.join("trunkline"));
        }
    }
    if account.is_dropped_to() {
        return Ok(Path::new(of_root).join("trunkline"));
    }
    Err(Error::new(format!("neither {variable} nor HOME is set: set {variable} to a folder that you may write to")))
}

/// Creates a folder that the server's account can read, regardless of the umask.
pub(crate) fn make(folder: &Path) -> Result<()> {
    make_path(folder, &Account::of_the_server()?)?;
    open(folder)
}

/// Creates a folder and its missing parents. If the caller is root, the server's account can enter
/// these parents, regardless of the umask.
pub(crate) fn make_path(folder: &Path, account: &Account) -> Result<()> {
    // A path that ends with `..` has no name: it leads to a folder that may exist already.
    let is_missing = |parent: &&Path| parent.file_name().is_some() && !parent.exists();
    let missing: Vec<&Path> = folder.ancestors().skip(1).take_while(is_missing).collect();
    fs::create_dir_all(folder).map_err(Error::at("cannot create the folder", folder))?;
    if account.is_dropped_to() { missing.into_iter().try_for_each(open) } else { Ok(()) }
}

fn open(folder: &Path) -> Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(0o755)).map_err(Error::at("cannot change the mode of", folder))
}
