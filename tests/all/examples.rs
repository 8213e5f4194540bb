//! The examples run as tests.

use crate::fixture::database;

#[path = "../../examples/import.rs"]
#[allow(dead_code)]
mod import;
#[path = "../../examples/ledger.rs"]
#[allow(dead_code)]
mod ledger;
#[path = "../../examples/many_callers.rs"]
#[allow(dead_code)]
mod many_callers;
#[path = "../../examples/outbox.rs"]
#[allow(dead_code)]
mod outbox;
#[path = "../../examples/send_mail.rs"]
#[allow(dead_code)]
mod send_mail;
#[path = "../../examples/transfer.rs"]
#[allow(dead_code)]
mod transfer;

#[tokio::test(flavor = "multi_thread")]
async fn send_mail_tries_again_and_gives_up() {
    let outcome = send_mail::run(&database().await).await.expect("the example runs");
    assert_eq!(outcome, (2, 2, vec!["grace: no such address".to_owned()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn import_writes_batches() {
    let (measurements, calls) = import::run(&database().await).await.expect("the example runs");
    assert!(measurements == 50_000 && calls < 500, "{calls}");
}

#[tokio::test(flavor = "multi_thread")]
async fn transfer_happens_exactly_once() {
    assert_eq!(transfer::run(&database().await).await.expect("the example runs"), [0, 500]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ledger_has_each_posting_once() {
    assert_eq!(ledger::run(&database().await).await.expect("the example runs"), (10_000, 10_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn outbox_delivers_what_was_committed() {
    let mut delivered = outbox::run(&database().await).await.expect("the example runs");
    delivered.sort(); // a worker gives back messages that would not start soon, and they arrive last
    assert_eq!(delivered, ["order 1 placed", "order 3 placed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_callers_share_rows() {
    assert!(many_callers::run(&database().await).await.expect("the example runs") < 1_000);
}
