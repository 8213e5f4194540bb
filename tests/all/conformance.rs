//! One suite for every transport. Each case runs through the server's own version of libpq and
//! through each of the library's transports, on every major version. The answers must be the same.

mod answer;
mod case;
mod transport;
mod typed;
mod values;
mod rows;
mod refusals;
mod ends;

use std::time::Duration;

use tokio::time::timeout;
use trunkline_embedded::Cluster;
use trunkline_libpq::Library;

use self::{
    case::{Case, Way},
    transport::{Libpq, Ours},
};
use crate::{fixture::connect, versions::on_each};

/// The time limit for all cases of a server, while four other servers run on the same busy machine.
const LONG: Duration = Duration::from_secs(300);

/// Returns the list of all cases.
fn cases() -> Vec<Case> {
    [values::cases(), rows::cases(), refusals::cases(), ends::cases()].into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL 14 to 18: see .ci/versions"]
async fn every_transport_gets_the_answers_of_libpq_from_every_version() {
    on_each(|cluster| async move {
        let major = cluster.binaries().major();
        timeout(LONG, conform(cluster)).await.unwrap_or_else(|_| panic!("PostgreSQL {major}: no answer"));
    })
    .await;
}

async fn conform(cluster: &'static Cluster) {
    let programs = cluster.binaries();
    let file = programs.dir().join("../lib/libpq.so.5");
    let library = Library::load(&file).unwrap_or_else(|error| {
        panic!("{} has no libpq beside it, as those of .ci/versions have: {error}", programs.dir().display())
    });
    assert_eq!(library.major(), programs.major(), "{}", file.display());
    let admin = connect(&cluster.url("postgres")).await;
    admin.batch_execute("create database conformance encoding utf8 template template0").await.expect("created");
    let admin = connect(&cluster.url("conformance")).await;
    admin.batch_execute(typed::TYPES).await.expect("created");
    let mut libpq = Libpq::open(cluster, &library);
    let mut ours = Vec::new();
    for way in Way::ALL {
        ours.push(Ours::open(cluster, way).await);
    }
    let (cases, mut differences) = (cases(), Vec::new());
    for case in &cases {
        let wanted = libpq.run(case);
        if !case.is_met(&wanted) {
            differences.push(format!("{}, libpq:\n{wanted:?} is not wanted", case.name));
        }
        for ours in &ours {
            let told = ours.run(case).await;
            let wanted = case.as_told(ours.way, &wanted);
            if told != wanted {
                differences.push(format!("{}, {}:\n{told:?}, not\n{wanted:?}", case.name, ours.way.name()));
            }
        }
    }
    assert!(differences.is_empty(), "PostgreSQL {}:\n{}", programs.major(), differences.join("\n"));
    assert!(libpq.notices() > 100, "{} notices came by", libpq.notices());
    println!(
        "PostgreSQL {}: {} cases, through libpq and in {} ways of ours",
        programs.major(),
        cases.len(),
        ours.len()
    );
}
