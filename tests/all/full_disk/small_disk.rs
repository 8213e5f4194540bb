//! A disk in memory that is small enough to fill. Only root can create it.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::{
        fs::{MetadataExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
};

use trunkline_embedded::Cluster;

/// The shell script that mounts the disk. It unmounts the disk when its input closes, which happens
/// when the value is dropped or the process ends.
const MOUNT: &str =
    r#"mount -t tmpfs -o "size=$1" tmpfs "$0" && echo mounted && cat >/dev/null && umount -l "$0"; rmdir "$0""#;

pub struct SmallDisk {
    pub folder: PathBuf,
    shell: Child,
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait(); // the shell has removed the folder
    }
}

impl SmallDisk {
    /// Mounts a disk for a cluster's server, with a ballast file that can be deleted to free space.
    pub fn mount(cluster: &Cluster, megabytes: usize, ballast: usize) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("trunkline-disk-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let folder = cluster.socket_dir().parent().expect("not the root").join(name);
        fs::create_dir(&folder).expect("a folder is made");
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(MOUNT).arg(&folder).arg(format!("{megabytes}m")).process_group(0);
        let mut shell =
            shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
        let mut said = String::new();
        BufReader::new(shell.stdout.take().expect("it is piped")).read_line(&mut said).expect("read");
        if said != "mounted\n" {
            let mut why = String::new();
            shell.stderr.take().expect("it is piped").read_to_string(&mut why).expect("read");
            let _ = shell.wait();
            panic!("no small disk can be made here: run this as root of a Linux that may mount: {}", why.trim());
        }
        let disk = Self { folder, shell };
        fs::write(disk.ballast(), vec![0; ballast << 20]).expect("it is empty");
        disk
    }

    fn ballast(&self) -> PathBuf {
        self.folder.join("ballast")
    }

    pub fn make_room(&self) {
        fs::remove_file(self.ballast()).expect("it is there");
    }

    /// Creates a folder on the disk that the server may write to.
    pub fn for_server(&self, cluster: &Cluster, name: &str) -> PathBuf {
        let folder = self.folder.join(name);
        fs::create_dir(&folder).expect("there is room for a name");
        let server = fs::metadata(cluster.data_dir()).expect("it is there");
        chown(&folder, Some(server.uid()), Some(server.gid())).expect("given");
        folder
    }

    /// Moves a folder of the server to the disk, and leaves a link in its place.
    pub fn take_over(&self, folder: &Path) {
        let to = self.folder.join(folder.file_name().expect("it has a name"));
        let moved = Command::new("cp").arg("-a").args([folder, &to]).status().expect("cp runs");
        assert!(moved.success());
        fs::remove_dir_all(folder).expect("removed");
        std::os::unix::fs::symlink(&to, folder).expect("linked");
    }
}
