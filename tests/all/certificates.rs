//! Tests client certificates and revocation lists with a PostgreSQL that requires them. psql must
//! accept and refuse the same connection strings.

mod authority;
mod server;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use trunkline::{
    Db,
    postgres::{
        Statement,
        compat::{self, tls::AsConfigured},
    },
};
use trunkline_embedded::Cluster;

use self::{authority::Authority, server::Server};
use crate::fixture::Said;

static USER: Statement<(), (String, bool)> =
    Statement::new("select current_user::text, ssl from pg_stat_ssl where pid = pg_backend_pid()");

/// A temporary folder with keys, certificates and lists.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("trunkline-{name}-{}", std::process::id()));
        std::fs::create_dir_all(path.join(".postgresql")).expect("a folder can be made");
        Self(path)
    }

    fn write(&self, name: &str, text: &str, mode: u32) -> String {
        use std::os::unix::fs::PermissionsExt;
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("the file belongs to the test");
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0); // the temporary folder of the run is removed anyway
    }
}

/// Connects with this folder as the home, and returns the user or the error.
async fn login(words: &str, home: &Path) -> Result<String, String> {
    let home = home.display().to_string();
    let db = Db::connect_with(words, |name| (name == "HOME").then(|| home.clone())).await;
    let answer = async { db?.run(&USER, ()).await }.await;
    answer.map(|(user, ssl)| if ssl { user } else { "plain".to_owned() }).map_err(|error| error.to_string())
}

fn assert_outcome(found: &Result<String, String>, refused: Option<&str>, words: &str) {
    match (found, refused) {
        (Ok(_), None) => {}
        (Err(error), Some(why)) => assert!(error.contains(why), "{words}: {error}"),
        _ => panic!("{words}: {found:?}"),
    }
}

/// Returns the name of a revocation list's file in a folder, without its number.
fn hash_of(list: &str, folder: &Folder) -> String {
    let path = folder.write("list", list, 0o644);
    let hash = Command::new("openssl").args(["crl", "-hash", "-noout", "-in", &path]).output().expect("openssl runs");
    String::from_utf8(hash.stdout).expect("text").trim().to_owned()
}

/// Returns true if psql can connect.
async fn psql(cluster: &Cluster, words: &str, home: &Path) -> bool {
    let mut psql = Command::new(cluster.binaries().dir().join("psql"));
    psql.env_clear().env("HOME", home).args(["-XAtc", "select 1", "-d", words]);
    let output = tokio::task::spawn_blocking(move || psql.output().expect("psql runs")).await.expect("no panic");
    output.status.success()
}

/// Checks whether psql connects with the files of this home. Before version 15, psql reads the
/// files of the system's user and ignores HOME.
async fn assert_psql(connects: bool, server: &Server, words: &str, home: &Path) {
    if server.version() >= 15 {
        assert_eq!(psql(server.cluster(), words, home).await, connects, "{words}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs psql, and a PostgreSQL with OpenSSL: see .ci/versions"]
async fn request_to_cancel_accepts_the_certificate_of_the_chosen_host() {
    let ours = Authority::new("ours");
    let server = Server::start(&ours).await;
    let folder = Folder::new("hosts");
    let root = folder.write("root", &ours.pem(), 0o644);
    // Adds a first host on which nothing listens. The certificate has the name of the second.
    let place = server.place().replace("host=localhost hostaddr=", "host=elsewhere,localhost hostaddr=127.0.0.1,");
    let place = place.replace("port=", "port=1,");
    let words = format!("{place} dbname=template1 sslmode=verify-full sslrootcert={root}");
    let (client, connection) = compat::connect(&words, AsConfigured).await.expect("connected");
    let connection = tokio::spawn(connection);
    client.cancel_token().cancel_query(AsConfigured).await.expect("sent");
    drop(client);
    connection.await.expect("no panic").expect("without an error");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs psql, and a PostgreSQL with OpenSSL: see .ci/versions"]
async fn client_proves_its_name_by_a_certificate() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let server = Server::start(&ours).await;
    let (folder, empty) = (Folder::new("certificates"), Folder::new("no-certificates"));
    let (certificate, key) = ours.issue(server.user());
    let (foreign_certificate, foreign_key) = other.issue(server.user());
    let (guest_certificate, guest_key) = ours.issue("guest");
    let root = folder.write("root", &ours.pem(), 0o644);
    let cert = folder.write("cert", &certificate, 0o644);
    let own = folder.write("key", &key, 0o600);
    let open = folder.write("open", &key, 0o644);
    let locked = folder.write("locked", &key.replace("BEGIN PRIVATE", "BEGIN ENCRYPTED PRIVATE"), 0o600);
    let foreign = folder.write("foreign", &foreign_certificate, 0o644);
    let foreign_key = folder.write("foreign_key", &foreign_key, 0o600);
    let guest = folder.write("guest", &guest_certificate, 0o644);
    let guest_key = folder.write("guest_key", &guest_key, 0o600);
    let home = folder.0.display();
    let with = |cert: &str, key: &str| format!("sslmode=verify-full sslrootcert={root} sslcert={cert} sslkey={key}");
    for (words, refused) in [
        (with(&cert, &own), &[][..]),
        (with(&cert, &own).replace("verify-full", "verify-ca"), &[]),
        (with(&guest, &guest_key), &["authentication failed for user"]),
        // Accepts a broken connection, because a server may close it before the client reads the
        // reason.
        (with(&foreign, &foreign_key), &["the authority that has signed the certificate of sslcert", "broke"]),
        (with(&cert, &open), &["sslkey=", "chmod 600"]),
        (with(&cert, &locked), &["the private key is encrypted", "openssl pkey"]),
        (with(&cert, &format!("{home}/absent")), &["sslkey=", "/absent: No such file"]),
        (with(&cert, &format!("{home}")), &["sslkey=", "not a plain file"]),
        (with(&cert, &guest_key), &["sslcert=", "the key of sslkey"]),
        (with(&cert, &root), &["chmod 600"]),
        (format!("sslmode=require sslcert={cert}"), &["there is no key for it"]),
        (format!("{} sslcertmode=disable", with(&cert, &own)), &["valid client certificate"]),
        (format!("sslmode=verify-full sslrootcert={root}"), &["valid client certificate"]),
    ] {
        for database in ["postgres", "verified"] {
            let words = format!("{} dbname={database} {words}", server.place());
            let (found, by_psql) = tokio::join!(login(&words, &empty.0), psql(server.cluster(), &words, &empty.0));
            match (&found, refused) {
                (Ok(user), []) => assert_eq!(user, server.user(), "{words}"),
                (Err(error), [_, ..]) => assert!(refused.iter().any(|why| error.contains(why)), "{words}: {error}"),
                _ => panic!("{words}: {found:?}"),
            }
            assert_eq!(found.is_ok(), by_psql, "{words}");
        }
    }
    // The library is stricter here than psql, which connects without the missing file.
    for (words, why) in [
        (format!("sslcert={home}/absent"), "sslcert="),
        (format!("sslcert={own} sslkey={own}"), "no certificate in PEM format"),
        (format!("sslmode=verify-full sslrootcert={root} sslcrl={home}/absent"), "sslcrl="),
        (format!("sslmode=verify-full sslrootcert={root} sslcrl={cert}"), "no revocation list in PEM format"),
        ("sslpassword=secret".to_owned(), "sslpassword is not supported"),
        ("sslmode=verify-ca".to_owned(), "write it to ~/.postgresql/root.crt"),
    ] {
        let error = login(&format!("{} dbname=postgres {words}", server.place()), &empty.0).await.expect_err(&words);
        assert!(error.contains(why), "{words}: {error}");
    }
    // The same files are also found at their default locations.
    for (name, text) in [("root.crt", &ours.pem()), ("postgresql.crt", &certificate), ("postgresql.key", &key)] {
        folder.write(&format!(".postgresql/{name}"), text, 0o600);
    }
    for mode in ["prefer", "require", "verify-ca", "verify-full"] {
        let words = format!("{} dbname=postgres sslmode={mode}", server.place());
        assert_eq!(login(&words, &folder.0).await.as_deref(), Ok(server.user()), "{mode}");
        assert_psql(true, &server, &words, &folder.0).await;
    }
    // With `require`, the default root certificate verifies a server that would otherwise not be
    // verified.
    folder.write(".postgresql/root.crt", &other.pem(), 0o644);
    let words = format!("{} dbname=template1 sslmode=require", server.place());
    let error = login(&words, &folder.0).await.expect_err("another authority");
    assert!(error.contains("is not signed by a trusted authority"), "{error}");
    assert_psql(false, &server, &words, &folder.0).await;
    // In the mode `prefer`, an unusable default certificate is not used.
    folder.write(".postgresql/postgresql.key", &key, 0o644);
    let words = format!("{} dbname=template1 sslmode=prefer", server.place());
    assert_eq!(login(&words, &folder.0).await.as_deref(), Ok(server.user()));
    let words = words.replace("prefer", "require");
    let error = login(&words, &folder.0).await.expect_err("an open key");
    assert!(error.contains("postgresql.key: other users"), "{error}");
}

#[tokio::test]
#[ignore = "needs psql, and a PostgreSQL with OpenSSL: see .ci/versions"]
async fn renewed_files_are_used_by_the_next_connection() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let server = Server::start(&ours).await;
    let folder = Folder::new("renewed");
    let (certificate, key) = ours.issue(server.user());
    let root = folder.write("root", &ours.pem(), 0o644);
    let cert = folder.write("cert", &certificate, 0o644);
    let own = folder.write("key", &key, 0o600);
    let words = format!("sslmode=verify-full sslrootcert={root} sslcert={cert} sslkey={own}");
    let db = Db::connect(&format!("{} dbname=postgres {words}", server.place())).await.expect("connected");
    // Ends the connection, so that the next call opens another.
    let call = async || {
        let end = Statement::<(), (bool,)>::new("select pg_terminate_backend(pg_backend_pid())");
        db.run(&end, ()).await.expect_err("ended");
        db.run(&USER, ()).await.map_err(|error| error.to_string())
    };
    assert_eq!(call().await.expect("connected again").0, server.user());
    folder.write("root", &other.pem(), 0o644);
    let error = call().await.expect_err("another authority");
    assert!(error.contains("is not signed by a trusted authority"), "{error}");
    let warnings = Said::warnings();
    let _ear = warnings.listen();
    // Half of a renewal changes nothing.
    folder.write("root", "half", 0o644);
    for _ in 0..2 {
        let error = db.run(&USER, ()).await.expect_err("as before").to_string();
        assert!(error.contains("is not signed by a trusted authority"), "{error}");
    }
    assert_eq!(warnings.take().iter().filter(|line| line.contains("cannot be used")).count(), 1);
    folder.write("root", &ours.pem(), 0o644);
    assert_eq!(db.run(&USER, ()).await.expect("connected again").0, server.user());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs psql, openssl, and a PostgreSQL with OpenSSL: see .ci/versions"]
async fn server_with_a_revoked_certificate_is_refused() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let server = Server::start(&ours).await;
    let (folder, empty) = (Folder::new("revoked"), Folder::new("revoked-home"));
    let root = folder.write("root", &ours.pem(), 0o644);
    let revoked = ours.list(&[server::SERIAL], 2999);
    let lists = [
        (folder.write("others", &ours.list(&[7], 2999), 0o644), None),
        (folder.write("revoked", &revoked, 0o644), Some("the server's certificate was revoked")),
        (folder.write("both", &format!("{}{revoked}", other.list(&[], 2999)), 0o644), Some("was revoked")),
        (folder.write("foreign", &other.list(&[], 2999), 0o644), Some("do not cover the server's certificate")),
        (folder.write("old", &ours.list(&[], 2020), 0o644), Some("a revocation list has expired")),
    ];
    for (list, refused) in lists {
        for mode in ["verify-full", "verify-ca", "require"] {
            let words = format!("{} dbname=template1 sslmode={mode} sslrootcert={root} sslcrl={list}", server.place());
            let (found, by_psql) = tokio::join!(login(&words, &empty.0), psql(server.cluster(), &words, &empty.0));
            assert_outcome(&found, refused, &words);
            assert_eq!(found.is_ok(), by_psql, "{words}");
        }
    }
    for (name, list, refused) in [
        ("good", ours.list(&[7], 2999), None),
        ("bad", revoked.clone(), Some("was revoked")),
        ("foreign", other.list(&[], 2999), Some("do not cover the server's certificate")),
    ] {
        let lists = folder.0.join(format!("lists-{name}"));
        std::fs::create_dir(&lists).expect("a folder can be made");
        folder.write(&format!("lists-{name}/{}.r0", hash_of(&list, &folder)), &list, 0o644);
        folder.write(&format!("lists-{name}/README"), "no list", 0o644);
        let words = format!("{} dbname=template1 sslmode=verify-ca sslrootcert={root}", server.place());
        let words = format!("{words} sslcrldir={}", lists.display());
        let found = login(&words, &empty.0).await;
        assert_outcome(&found, refused, &words);
        assert_eq!(found.is_ok(), psql(server.cluster(), &words, &empty.0).await, "{words}");
    }
    let words = format!("{} sslmode=verify-ca sslrootcert={root} sslcrldir={}", server.place(), empty.0.display());
    let error = login(&words, &empty.0).await.expect_err("an empty folder");
    assert!(error.contains("openssl rehash"), "{error}");

    folder.write(".postgresql/root.crl", &revoked, 0o644);
    let words = format!("{} dbname=template1 sslmode=verify-ca sslrootcert={root}", server.place());
    let error = login(&words, &folder.0).await.expect_err("revoked");
    assert!(error.contains("was revoked"), "{error}");
    assert_psql(false, &server, &words, &folder.0).await;
    // Without a root certificate, `require` verifies nothing, so the list does not apply.
    let words = format!("{} dbname=template1 sslmode=require", server.place());
    assert_eq!(login(&words, &folder.0).await.as_deref(), Ok(server.user()));
    assert_psql(true, &server, &words, &folder.0).await;
}
