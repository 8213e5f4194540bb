//! Pictures of the pages, for whoever changes how they look, and for the guide.

use std::{fs, path::PathBuf};

use super::{NARROW, WIDE, lent, sample};
use crate::web::Site;

/// `TRUNKLINE_PICTURES=FOLDER cargo test -p trunkline-console --test all pictures` writes them.
#[tokio::test(flavor = "multi_thread")]
async fn pictures_of_all_pages() {
    let Some(folder) = std::env::var_os("TRUNKLINE_PICTURES").map(PathBuf::from) else { return };
    let Some(lent) = lent().await else { return };
    let browser = lent.as_ref().expect("one");
    let site = Site::with(|console| console.title("shop")).await;
    sample::fill(&site).await;
    let dead = site.number("select id from trunkline.dead_letters('webhooks') limit 1").await;
    let mail = site.number("select id from trunkline.messages('emails') limit 1").await;
    let image = site.number("select id from trunkline.messages('thumbnails') limit 1").await;
    browser.until_shown(&site, "/", "search-index").await;
    fs::create_dir_all(&folder).expect("a folder");
    for (size, wide) in [(WIDE, "wide"), (NARROW, "narrow")] {
        for scheme in ["light", "dark"] {
            browser.resize(size).await;
            browser.scheme(scheme).await;
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
                fs::write(folder.join(format!("{name}-{wide}-{scheme}.png")), browser.picture().await)
                    .expect("written");
            }
        }
    }
    drop(lent);
    site.end().await;
}
