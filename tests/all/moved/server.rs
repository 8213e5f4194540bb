//! A server for a single test. While the server is stopped, the test may change its data folder.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
};

use trunkline_embedded::{Binaries, Cluster, Stop};

use super::tools::Tools;

pub struct Server {
    folder: PathBuf,
    binaries: Option<Binaries>,
    settings: Vec<(&'static str, &'static str)>,
    running: Option<Cluster>,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.running.take());
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Server {
    pub fn start(binaries: Option<Binaries>, settings: &[(&'static str, &'static str)]) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("tl-moved-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut server =
            Self { folder: std::env::temp_dir().join(name), binaries, settings: settings.to_vec(), running: None };
        server.start_again();
        server
    }

    pub fn start_again(&mut self) {
        let mut builder = Cluster::at(&self.folder).setting("fsync", "off");
        for (name, value) in &self.settings {
            builder = builder.setting(*name, *value);
        }
        if let Some(binaries) = &self.binaries {
            builder = builder.binaries(binaries.clone());
        }
        self.running = Some(builder.start().expect("a private PostgreSQL starts"));
    }

    pub fn stop(&mut self) {
        let running = self.running.take().expect("it runs");
        running.stop(Stop::Fast).expect("stopped");
    }

    pub fn url(&self) -> String {
        crate::fixture::settled(&self.running.as_ref().expect("it runs").url("postgres"))
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Copies the data folder while the server is stopped, for a backup or for point-in-time
    /// recovery.
    pub fn backs_up(&self) {
        self.copies(&self.data(), &self.folder.join("backup"));
    }

    pub fn is_restored(&self) {
        fs::remove_dir_all(self.data()).expect("removed");
        self.copies(&self.folder.join("backup"), &self.data());
    }

    fn copies(&self, from: &Path, to: &Path) {
        let copied = Command::new("cp").arg("-a").arg(from).arg(to).current_dir(&self.folder).status();
        assert!(copied.expect("it runs").success(), "{} is not copied", from.display());
    }

    /// Makes the server a standby. Its recovery does not end, because its primary sends nothing.
    pub fn becomes_a_standby(&self) {
        let (signal, owner) = (self.data().join("standby.signal"), self.data().metadata().expect("it is there"));
        fs::write(&signal, "").expect("written");
        chown(&signal, Some(owner.uid()), Some(owner.gid())).expect("given");
    }

    /// Makes the server a copy and hot standby of another server. Both are restarted.
    pub fn follows(&mut self, primary: &mut Self) {
        self.stop();
        primary.stop();
        fs::remove_dir_all(self.data()).expect("removed");
        self.copies(&primary.data(), &self.data());
        self.becomes_a_standby();
        primary.start_again();
        let url = primary.running.as_ref().expect("it runs").url("postgres");
        let settings = format!("primary_conninfo = '{}'\n", url.replace('\'', "''"));
        fs::write(self.data().join("postgresql.auto.conf"), settings).expect("written");
        self.start_again();
    }

    /// Runs a program as the owner of the folder, because PostgreSQL's programs refuse to run as
    /// root.
    fn run(&self, binaries: &Binaries, program: &str, arguments: &[&str]) {
        let owner = self.data().metadata().expect("it is there");
        let mut command = Command::new(binaries.dir().join(program));
        if Tools::is_root() {
            command.uid(owner.uid()).gid(owner.gid());
        }
        let output = command.args(arguments).current_dir(&self.folder).env("LC_ALL", "C").output().expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&said));
    }

    /// Enables checksums, which are the default in PostgreSQL 18 and later.
    pub fn gets_checksums(&self, binaries: &Binaries) {
        self.run(binaries, "pg_checksums", &["--enable", "--no-sync", "--pgdata", &text(&self.data())]);
    }

    pub fn is_upgraded_from(&self, before: &Self, old: &Binaries, new: &Tools) {
        // Gives the folder to the account, because `pg_upgrade` writes to its working directory.
        fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o700)).expect("made its own");
        let new = new.binaries();
        let folders = [text(old.dir()), text(new.dir()), text(&before.data()), text(&self.data())];
        let [old_bin, new_bin, old_data, new_data] = &folders;
        let arguments = [
            "--old-bindir",
            old_bin,
            "--new-bindir",
            new_bin,
            "--old-datadir",
            old_data,
            "--new-datadir",
            new_data,
            "--username",
            "trunkline",
            "--socketdir",
            &text(&self.folder),
        ];
        self.run(&new, "pg_upgrade", &arguments);
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("text").to_owned()
}
