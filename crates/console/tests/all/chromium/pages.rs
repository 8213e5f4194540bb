//! Checks every page at both sizes: its numbers match SQL, nothing overflows, and the browser logs
//! no error.

use serde_json::{Value, json};

use super::{Browser, NARROW, WIDE, sample};
use crate::web::Site;

/// Returns the path of every page, with a text that the page contains.
pub async fn all(site: &Site) -> Vec<(String, &'static str)> {
    let dead = site.number("select min(id) from trunkline.dead_letters('webhooks')").await;
    let mail = site.number("select min(id) from trunkline.messages('emails')").await;
    let image = site.number("select min(id) from trunkline.messages('thumbnails')").await;
    vec![
        ("/".to_owned(), "Needs attention"),
        ("/queues/emails".to_owned(), "emails"),
        ("/queues/exports".to_owned(), "paused"),
        ("/queues/webhooks/messages".to_owned(), "503 Service Unavailable"),
        ("/queues/invoices/messages?key=customer-7".to_owned(), "customer-7"),
        ("/queues/search-index/messages".to_owned(), "No message matches"),
        (format!("/queues/emails/messages/{mail}"), "welcome"),
        (format!("/queues/thumbnails/messages/{image}"), "89504e47"),
        (format!("/queues/webhooks/messages/{dead}"), "timed out"),
        ("/queues/webhooks/dead".to_owned(), "410 Gone"),
        ("/queues/emails/dead".to_owned(), "There are no dead letters"),
        ("/schedules".to_owned(), "month-end"),
        ("/relays".to_owned(), "kafka.shop"),
        ("/doctor".to_owned(), "octor"),
        ("/audit".to_owned(), "Audit log"),
        ("/queues/not-there".to_owned(), "Not found"),
    ]
}

impl Browser {
    /// Checks that no part of the page extends beyond its right edge.
    pub async fn fits(&self) {
        let script = "const wide = document.documentElement.clientWidth;
            if (document.documentElement.scrollWidth <= wide) return [];
            return [...document.querySelectorAll('body *')].filter(node => node.getBoundingClientRect().right > wide + 1)
                .map(node => node.outerHTML.slice(0, 120))";
        let out = self.run(script, json!([])).await;
        assert_eq!(out, json!([]), "at {}", self.url().await);
    }

    /// Checks that no script of a payload ran, and that the browser logged no error.
    pub async fn is_quiet(&self) {
        assert!(!self.is_stopped().await, "a box is open at {}", self.url().await);
        let said: Vec<String> =
            self.said().await.into_iter().filter(|said| !said.contains("404 (Not Found)")).collect();
        assert!(said.is_empty(), "{}: {said:?}", self.url().await);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: see .ci/browser"]
async fn every_page_fits_and_shows_what_it_is_for() {
    let browser = Browser::lent().await;
    let site = sample::shop().await;
    browser.until_shown(&site, "/", "search-index").await;
    for size in [WIDE, NARROW] {
        browser.resize(size).await;
        for (path, text) in all(&site).await {
            browser.open(&site, &path).await;
            // Waits for the text, because an event of an earlier sample may still be in transit.
            browser.until("return document.body.innerText.includes(arguments[0])", json!([text])).await;
            browser.fits().await;
            browser.is_quiet().await;
        }
    }
    drop(browser);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: see .ci/browser"]
async fn the_numbers_of_the_pages_are_those_of_sql() {
    let browser = Browser::lent().await;
    let site = sample::shop().await;
    browser.until_shown(&site, "/", "search-index").await;
    let mut depth = 0;
    for queue in ["emails", "exports", "invoices", "payments", "search-index", "thumbnails", "webhooks"] {
        let of = |name: &str| format!("select {name} from trunkline.stats('{queue}')");
        for (path, place) in
            [("/", format!("tr[data-queue='{queue}']")), (&*format!("/queues/{queue}"), ".numbers".to_owned())]
        {
            if browser.path().await != path {
                browser.open(&site, path).await;
            }
            for (cell, name) in [
                ("due", "due"),
                ("leased", "leased"),
                ("retrying", "to_retry"),
                ("delayed", "delayed"),
                ("dead", "dead"),
            ] {
                let is = site.number(&of(name)).await.to_string();
                let read = format!(
                    "const cell = document.querySelector(\"{place} [data-cell='{cell}']\"); return cell && cell.textContent.replace(',', '') === '{is}'"
                );
                browser.until(&read, json!([])).await;
            }
        }
        depth += site.number(&of("due + leased + to_retry + delayed")).await;
    }
    browser.open(&site, "/").await;
    assert_eq!(browser.text("#held").await.replace(',', ""), format!("7 queues {depth} messages"));
    let dead: i64 = site.number("select count(*) from trunkline.dead_letters('webhooks')").await;
    browser.open(&site, "/queues/webhooks/dead").await;
    let read = "return [...document.querySelectorAll('table')][0].querySelectorAll('tbody tr').values().map(row => Number(row.querySelector('td.n').innerText)).toArray()";
    let groups = browser.run(read, json!([])).await;
    assert_eq!(groups, json!([23, 7, 2]));
    assert_eq!(dead, groups.as_array().expect("a list").iter().filter_map(Value::as_i64).sum::<i64>());
    drop(browser);
    site.end().await;
}
