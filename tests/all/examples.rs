//! What is not run is not there.

use crate::fixture::database;

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
async fn send_mail_retries_and_buries() {
    let sent = send_mail::run(&database().await).await.expect("the example runs");
    assert_eq!(sent, ["ada@example.org", "grace@example.org"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn transfer_happens_exactly_once() {
    assert_eq!(transfer::run(&database().await).await.expect("the example runs"), [0, 500]);
}

#[tokio::test(flavor = "multi_thread")]
async fn outbox_publishes_what_was_committed() {
    assert_eq!(outbox::run(&database().await).await.expect("the example runs"), ["order 2 placed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_callers_share_rows() {
    assert!(many_callers::run(&database().await).await.expect("the example runs") < 1_000);
}
