//! Every action through its buttons: the console asks first, acts, and writes the audit.

use serde_json::json;
use trunkline::{Queue, Settings};

use super::{Browser, NARROW, WIDE};
use crate::web::Site;

/// Returns a selector for the button of the form with this verb. If several forms have the verb,
/// the field selects one.
fn button(verb: &str, field: &str) -> String {
    let of = if field.is_empty() { String::new() } else { format!(":has({field})") };
    format!("form:has(input[name=verb][value='{verb}']){of} button")
}

impl Browser {
    /// Presses a button and confirms. Returns the question and the final notice.
    async fn act(&self, verb: &str, field: &str) -> (String, String) {
        let asked = self.ask(verb, field).await;
        self.fits().await;
        if verb == "purge" {
            self.write("input[name=confirm]", "q").await;
        }
        self.follow("button.sure").await;
        self.fits().await;
        self.is_quiet().await;
        (asked, self.text("#notice").await)
    }

    async fn ask(&self, verb: &str, field: &str) -> String {
        self.follow(&button(verb, field)).await;
        self.text("main").await
    }
}

async fn dead(queue: &Queue<String>, errors: &[&str]) {
    for error in errors {
        queue.enqueue(&format!("of {error}")).await.expect("enqueued");
        let leases = queue.lease(1).await.expect("leased");
        queue.bury(&leases, *error).await.expect("buried");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: see .ci/browser"]
async fn every_action_is_asked_done_and_written_down() {
    let browser = Browser::lent().await;
    let site = Site::new().await;
    let settings = Settings::new("text").priorities(3);
    site.db.create_queue("q", &settings).await.expect("created");
    let queue: Queue<String> = site.db.queue("q").await.expect("opened");
    site.sql.execute("select trunkline.set_schedule('report', 'q', '0 3 * * *', 'go')", &[]).await.expect("set");
    for size in [WIDE, NARROW] {
        browser.resize(size).await;
        site.sql.batch_execute("truncate trunkline.audit").await.expect("emptied");

        // Returning to the previous page in the browser does not run an action.
        browser.open(&site, "/queues/q").await;
        browser.ask("pause", "").await;
        browser.follow("main a[href='/queues/q']").await;
        assert_eq!(site.number("select count(*) from trunkline.audit").await, 0);

        assert_eq!(browser.act("pause", "").await.1, "Paused queue q.");
        browser.open(&site, "/queues/q").await;
        assert_eq!(browser.act("resume", "").await.1, "Resumed queue q.");

        browser.open(&site, "/queues/q").await;
        browser.write("textarea[name=payload]", "by <b>hand</b>").await;
        browser.write("input[name=delay]", "1h").await;
        browser.write("input[name=metadata]", r#"{"tenant": "acme"}"#).await;
        browser.write("input[name=priority]", "2").await;
        let (asked, _) = browser.act("enqueue", "").await;
        assert!(asked.contains("14 bytes is enqueued, due in 3600 s"), "{asked}");
        let by_hand = "select id from trunkline.messages('q') where payload = 'by <b>hand</b>' and metadata->>'tenant' = 'acme' and priority = 2";
        let id = site.number(by_hand).await;

        browser.open(&site, &format!("/queues/q/messages/{id}")).await;
        assert_eq!(browser.text("#payload").await, "by <b>hand</b>");
        browser.write("input[name=delay]", "0s").await;
        assert_eq!(browser.act("reschedule", "").await.1, format!("Rescheduled message {id}."));
        assert_eq!(site.number("select due from trunkline.stats('q')").await, 1);
        browser.open(&site, &format!("/queues/q/messages/{id}")).await;
        assert_eq!(browser.act("cancel", "").await.1, format!("Cancelled message {id}."));

        queue.enqueue(&"one".to_owned()).await.expect("enqueued");
        queue.enqueue(&"two".to_owned()).await.expect("enqueued");
        browser.open(&site, "/queues/q").await;
        let (asked, told) = browser.act("purge", "").await;
        assert!(
            asked.contains("Messages affected at the moment: 2.") && told == "Purged 2 messages of q.",
            "{asked}: {told}"
        );

        dead(&queue, &["no such host", "no such host", "odd", "odd", "odd", "last", "last"]).await;
        browser.open(&site, "/queues/q/dead").await;
        let (asked, told) = browser.act("replay", "input[name=error][value='no such host']").await;
        assert!(
            asked.contains("Messages affected at the moment: 2.") && told == "Replayed 2 dead letters.",
            "{asked}: {told}"
        );
        browser.open(&site, "/queues/q/dead").await;
        browser.write("form:has(input[name=error][value=odd]) input[name=rate]", "0.1").await;
        assert_eq!(browser.act("replay", "input[name=error][value=odd]").await.1, "Replayed 3 dead letters.");
        assert_eq!(site.number("select due + delayed + to_retry from trunkline.stats('q')").await, 5);
        let last = site.number("select min(id) from trunkline.dead_letters('q')").await;
        browser.open(&site, &format!("/queues/q/messages/{last}")).await;
        browser.write("textarea[name=payload]", "mended").await;
        let replaced = browser.act("edit", "").await.1;
        assert!(
            replaced.starts_with(&format!("Replaced dead letter {last} with a new message. Message ")),
            "{replaced}"
        );
        assert_eq!(site.number("select count(*) from trunkline.messages('q') where payload = 'mended'").await, 1);
        let last = site.number("select min(id) from trunkline.dead_letters('q')").await;
        browser.open(&site, &format!("/queues/q/messages/{last}")).await;
        assert_eq!(browser.act("discard", "").await.1, "Discarded 1 dead letter.");
        assert_eq!(site.number("select dead from trunkline.stats('q')").await, 0);

        browser.open(&site, "/schedules").await;
        browser.act("pause-schedule", "").await;
        browser.open(&site, "/schedules").await;
        browser.act("resume-schedule", "").await;
        browser.open(&site, "/schedules").await;
        browser.act("fire-schedule", "").await;
        assert_eq!(site.number("select count(*) from trunkline.messages('q') where payload = 'go'").await, 1);

        let written = "select count(*) from trunkline.audit where who = 'local' and affected > 0";
        browser.open(&site, "/audit").await;
        let rows = browser.run("return document.querySelectorAll('tbody tr').length", json!([])).await;
        assert_eq!((site.number(written).await, rows), (13, json!(13)));
        assert!(!browser.shown().await.contains("hand"), "a payload is in the audit");
        queue.purge().await.expect("purged");
    }
    drop(browser);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: see .ci/browser"]
async fn without_javascript_everything_but_the_moving_works() {
    let browser = Browser::lent().await;
    let site = Site::new().await;
    site.db.create_queue("plain", &Settings::new("text")).await.expect("created");
    let site = site.restarted(|console| console).await;
    browser.command("Emulation.setScriptExecutionDisabled", json!({ "value": true })).await;
    browser.until_shown(&site, "/", "plain").await;
    browser.follow("main a[href='/queues/plain']").await;
    browser.write("textarea[name=payload]", "without").await;
    browser.follow(&button("enqueue", "")).await;
    browser.follow("button.sure").await;
    let enqueued = browser.text("#notice").await;
    assert!(enqueued.starts_with("Enqueued a message into plain. Message "), "{enqueued}");
    assert_eq!(site.number("select due from trunkline.stats('plain')").await, 1);
    let number = "select id from trunkline.messages('plain')";
    browser.open(&site, "/queues/plain/messages").await;
    browser.follow(&format!("a[href$='/messages/{}']", site.number(number).await)).await;
    assert_eq!(browser.text("#payload").await, "without");
    drop(browser);
    site.end().await;
}
