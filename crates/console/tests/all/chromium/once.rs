//! Reloads, the browser's back button and double clicks act only once, and lose no typed text.

use serde_json::json;
use trunkline::Settings;

use super::{Browser, NARROW, WIDE};
use crate::web::Site;

const SAYS_YES: &str = "button.sure";
const ENQUEUE: &str = "form:has(input[name=verb][value=enqueue]) button";

async fn done(site: &Site) -> (i64, i64) {
    let messages = site.number("select count(*) from trunkline.messages('orders')").await;
    (site.number("select count(*) from trunkline.audit").await, messages)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: see .ci/browser"]
async fn reload_and_the_way_back_do_nothing_again() {
    let browser = Browser::lent().await;
    let site = Site::new().await;
    site.db.create_queue("orders", &Settings::new("jsonb")).await.expect("created");
    for (size, round) in [(WIDE, 1), (NARROW, 2)] {
        browser.resize(size).await;
        browser.open(&site, "/queues/orders").await;
        browser.write("textarea[name=payload]", "{bad").await;
        browser.write("input[name=delay]", "1h").await;
        browser.follow(ENQUEUE).await;
        let said = browser.text("main").await;
        assert!(said.contains("invalid input syntax for type json") && !said.contains("statement"), "{said}");
        let typed = "return [document.querySelector('textarea[name=payload]').value, document.querySelector('input[name=delay]').value]";
        assert_eq!(browser.run(typed, json!([])).await, json!(["{bad", "1h"]));
        browser.fits().await;
        browser.write("textarea[name=payload]", r#"{"good": 1}"#).await;
        browser.follow(ENQUEUE).await;
        // Changing the form before the confirmation keeps the text, too.
        browser.follow("button[formaction$='/act/change']").await;
        assert_eq!(browser.run(typed, json!([])).await, json!([r#"{"good": 1}"#, "1h"]));
        browser.follow(ENQUEUE).await;
        browser.follow(SAYS_YES).await;
        assert_eq!(browser.path().await, "/queues/orders");
        let said = browser.text("#notice").await;
        assert!(said.starts_with("Enqueued a message into orders. Message "), "{said}");
        browser.fits().await;
        browser.reload().await;
        let notices = browser.run("return document.querySelectorAll('#notice').length", json!([])).await;
        assert_eq!((notices, done(&site).await), (json!(0), (round, round)), "it is said once");

        browser.back().await;
        let question = browser.shown().await;
        assert!(question.contains("Enqueue a message into orders?"), "{question}");
        browser.follow(SAYS_YES).await;
        assert!(browser.text("#notice").await.starts_with("This form was already submitted"));
        assert_eq!(done(&site).await, (round, round));
    }
    browser.said().await; // the browser logs the 400, as intended
    drop(browser);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: see .ci/browser"]
async fn second_click_is_none() {
    let browser = Browser::lent().await;
    let site = Site::new().await;
    site.db.create_queue("orders", &Settings::new("text")).await.expect("created");
    browser.open(&site, "/queues/orders").await;
    browser.write("textarea[name=payload]", "once").await;
    browser.follow(ENQUEUE).await;
    browser
        .run(
            "window.isLeft = true; const yes = document.querySelector('button.sure'); yes.click(); yes.click();",
            json!([]),
        )
        .await;
    browser.until("return window.isLeft !== true && document.querySelector('#notice') !== null", json!([])).await;
    assert_eq!(done(&site).await, (1, 1));
    drop(browser);
    site.end().await;
}
