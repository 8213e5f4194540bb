//! Long errors and names do not push any button off the page.

use serde_json::json;
use trunkline::{Draft, Failure, Message, Queue, Settings, Worker};

use super::{Browser, NARROW, WIDE};
use crate::web::Site;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: see .ci/browser"]
async fn buttons_are_in_sight_whatever_is_beside_them() {
    let browser = Browser::lent().await;
    let site = Site::new().await;
    let name = format!("a-queue-of-{}", "long-name-".repeat(3));
    let name = name.trim_end_matches('-');
    site.db.create_queue(name, &Settings::new("text").partitions(2)).await.expect("created");
    let queue: Queue<String> = site.db.queue(name).await.expect("opened");
    let long = "ValueError: bad number at https://hooks.example.com/a/very/long/path?with=a&long=query ".repeat(4);
    for error in [long.clone(), "x".repeat(400), "connect: timed out".to_owned()] {
        let key = format!("customer-{}", "9".repeat(60));
        queue.enqueue(Draft::new(error).key(key)).await.expect("enqueued");
    }
    let dies = |message: Message<String>| async move { Err::<(), _>(Failure::dead(message.payload)) };
    Worker::new(queue, dies).drain().await.expect("it works");
    let schedule =
        format!("select trunkline.set_schedule('{}', '{name}', '0 3 * * *', 'go', key => 'k')", "nightly-".repeat(5));
    site.sql.batch_execute(&schedule).await.expect("set");
    let letter = site.number(&format!("select min(id) from trunkline.dead_letters('{name}')")).await;
    let out = "return [...document.querySelectorAll('main button, main .wide')].filter(node => {
            const box = node.closest('.wide') || document.body;
            return node.getBoundingClientRect().right > box.getBoundingClientRect().right + 1 || node.scrollWidth > node.clientWidth + 2;
        }).map(node => node.outerHTML.slice(0, 100) + ' ' + node.getBoundingClientRect().right + ' ' + node.scrollWidth + '/' + node.clientWidth)";
    for size in [WIDE, (1440, 900, false), (390, 844, true), NARROW] {
        browser.resize(size).await;
        for path in ["", "/dead", "/messages", &format!("/messages/{letter}")] {
            browser.open(&site, &format!("/queues/{name}{path}")).await;
            assert_eq!(browser.run(out, json!([])).await, json!([]), "{path} at {size:?}");
            browser.fits().await;
        }
        for path in ["/", "/schedules", "/audit", "/relays"] {
            browser.until_shown(&site, path, "").await;
            assert_eq!(browser.run(out, json!([])).await, json!([]), "{path} at {size:?}");
            browser.fits().await;
        }
    }
    drop(browser);
    site.end().await;
}
