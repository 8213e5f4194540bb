//! Payloads, keys, errors and names from an attacker are shown as text, and have no effect.

use serde_json::json;
use trunkline::{Draft, Queue, Settings};

use super::{Browser, NARROW, WIDE};
use crate::web::Site;

const MARKUP: &str = "</pre></textarea></title><script>window.ran=1;alert(1)</script><img src=x onerror=\"window.ran=1\"><svg onload=window.ran=1>\
    <a href=\"javascript:window.ran=1\">x</a><style>*{display:none}</style><base href=//evil.example/>{{7*7}}'\"`&amp;\u{0}";
const TURNED: &str = "\u{202e}gnp.exe\u{2066}\u{200f}\u{1b}[2J\u{feff}\u{85}";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: see .ci/browser"]
async fn hostile_texts_run_nothing_and_stay_in_their_place() {
    let browser = Browser::lent().await;
    let site = Site::new().await;
    // The queue's name has the maximum length.
    let long = format!("q{}", "-long.name_".repeat(3));
    let name = &long[..long.len().min(32)];
    site.db.create_queue(name, &Settings::new("text").partitions(4)).await.expect("created");
    site.db.create_queue("dead", &Settings::new("text")).await.expect("created");
    site.db.create_queue("raw", &Settings::new("bytea")).await.expect("created");
    let queue: Queue<String> = site.db.queue(name).await.expect("opened");
    let dead: Queue<String> = site.db.queue("dead").await.expect("opened");
    let raw: Queue<Vec<u8>> = site.db.queue("raw").await.expect("opened");
    let markup = MARKUP.replace('\u{0}', "");
    let long_key = "k".repeat(1_000);
    let mut paths = vec!["/".to_owned(), format!("/queues/{name}"), format!("/queues/{name}/messages")];
    for (payload, key) in [
        (markup.clone(), markup.as_str()),
        (TURNED.repeat(20), TURNED),
        ("x".repeat(64 * 1024 * 1024 - 1), long_key.as_str()),
        ("word".repeat(10_000), "wide"),
    ] {
        let draft = Draft::new(payload)
            .key(key)
            .with("note", markup.as_str())
            .with(key.replace(|sign: char| sign.is_control(), ""), TURNED);
        let id = queue.enqueue(draft).await.expect("enqueued").id();
        paths.push(format!("/queues/{name}/messages/{id}"));
    }
    let broken =
        raw.enqueue([b"\xff\xfe\x00\xc3\x28</pre><script>window.ran=1</script>".as_slice(), &[0; 600]].concat()).await;
    paths.push(format!("/queues/raw/messages/{}", broken.expect("enqueued").id()));
    for error in [markup.clone(), "e".repeat(5_000), TURNED.to_owned()] {
        let id = dead.enqueue(&markup).await.expect("enqueued").id();
        let leases = dead.lease(1).await.expect("leased");
        dead.bury(&leases, error).await.expect("buried");
        paths.push(format!("/queues/dead/messages/{id}"));
    }
    paths.extend(["/queues/dead/dead", "/queues/raw/messages", "/doctor", "/audit"].map(str::to_owned));
    paths.push("/queues/%3Cscript%3Ewindow.ran=1%3C%2Fscript%3E".to_owned());
    paths.push("/queues/dead/messages?key=%22%3E%3Cscript%3Ewindow.ran=1%3C%2Fscript%3E&state=%3Cb%3E".to_owned());
    paths.push("/queues/dead/dead?error=%3Cimg%20src%3Dx%20onerror%3Dwindow.ran%3D1%3E".to_owned());
    let site = site.restarted(|console| console).await;
    browser.until_shown(&site, "/", name).await;
    for size in [WIDE, NARROW] {
        browser.resize(size).await;
        for path in &paths {
            browser.open(&site, path).await;
            let harmless = "return window.ran === undefined && !document.querySelector('main script, main img, main style, base, main svg[onload]')
                && !document.querySelector('a[href^=\"javascript\"]') && !/[\\u202a-\\u202e\\u2066-\\u2069\\u001b]/.test(document.body.innerText)
                && document.documentElement.outerHTML.length < 400000";
            assert_eq!(browser.run(harmless, json!([])).await, true, "{path}: {}", browser.shown().await);
            browser.fits().await;
            browser.is_quiet().await;
        }
    }

    // A form with markup replays only the dead letters whose error contains that markup.
    browser.resize(WIDE).await;
    browser.open(&site, "/queues/dead/dead").await;
    browser.follow("form:has(input[name=verb][value=replay]):has(input[name=error][value*='script']) button").await;
    browser.follow("button.sure").await;
    assert_eq!(browser.text("#notice").await, "Replayed 1 dead letter.");
    browser.is_quiet().await;
    drop(browser);
    site.end().await;
}
