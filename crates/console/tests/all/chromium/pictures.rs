//! Screenshots of the pages, for the guide and for reviews of changes.

use std::{fs, path::PathBuf};

use super::{Browser, NARROW, WIDE, sample};

/// Run as `TRUNKLINE_PICTURES=FOLDER cargo test -p trunkline-console --test all pictures --
/// --ignored`, writes the screenshots to that folder.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: see .ci/browser"]
async fn every_page_can_be_pictured_wide_narrow_light_and_dark() {
    let folder = std::env::var_os("TRUNKLINE_PICTURES").map(PathBuf::from);
    if let Some(folder) = &folder {
        fs::create_dir_all(folder).expect("a folder");
    }
    let browser = Browser::lent().await;
    let site = sample::shop().await;
    let dead = site.number("select id from trunkline.dead_letters('webhooks') limit 1").await;
    let mail = site.number("select id from trunkline.messages('emails') order by due_at desc limit 1").await;
    let image = site.number("select id from trunkline.messages('thumbnails') limit 1").await;
    browser.until_shown(&site, "/", "search-index").await;
    let tasks = sample::work(&site).await;
    browser.open(&site, "/").await;
    let busy = "return [...document.querySelectorAll('#queues tr')].filter(row => row.querySelector('[data-cell=went]').innerText !== '0').length >= 3";
    browser.until(busy, serde_json::json!([])).await;
    let reported = "select count(*) from trunkline.worker where handled > 0";
    let deadline = std::time::Instant::now() + super::SOON;
    while site.number(reported).await < 3 {
        assert!(std::time::Instant::now() < deadline, "no worker reports");
        crate::until_next_poll().await;
    }
    for (name, path) in [
        ("overview", "/".to_owned()),
        ("queue", "/queues/emails".to_owned()),
        ("messages", "/queues/webhooks/messages".to_owned()),
        ("message", format!("/queues/emails/messages/{mail}")),
        ("bytes", format!("/queues/thumbnails/messages/{image}")),
        ("letter", format!("/queues/webhooks/messages/{dead}")),
        ("dead", "/queues/webhooks/dead".to_owned()),
        ("schedules", "/schedules".to_owned()),
        ("doctor", "/doctor".to_owned()),
        ("audit", "/audit".to_owned()),
    ] {
        browser.open(&site, &path).await;
        browser.run(sample::HOUR, serde_json::json!([])).await;
        for (size, wide) in [(WIDE, "wide"), (NARROW, "narrow")] {
            browser.resize(size).await;
            for scheme in ["light", "dark"] {
                browser.scheme(scheme).await;
                let picture = browser.picture().await;
                assert!(picture.len() > 1000 && picture[8..12] == *b"WEBP", "{name}: {} bytes", picture.len());
                if let Some(folder) = &folder {
                    fs::write(folder.join(format!("{name}-{wide}-{scheme}.webp")), picture).expect("written");
                }
            }
        }
    }
    drop(browser);
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    site.end().await;
}
