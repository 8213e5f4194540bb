//! The console in a real browser.

mod driver;
mod sample;
mod pages;
mod moves;
mod deeds;
mod once;
mod edges;
mod hostile;
mod entry;
mod everybody;
mod pictures;

pub use driver::{Browser, NARROW, SOON, WIDE};

use std::time::Instant;

use crate::web::Site;

impl Browser {
    /// Opens a page of the console.
    pub async fn open(&self, site: &Site, path: &str) {
        self.goto(&format!("http://{}{path}", site.address)).await;
    }

    /// Reloads a page until it contains a text, because the console samples the queues only at
    /// intervals.
    pub async fn until_shown(&self, site: &Site, path: &str, text: &str) {
        let deadline = Instant::now() + SOON;
        loop {
            self.open(site, path).await;
            let shown = self.shown().await;
            if shown.contains(text) {
                return;
            }
            assert!(Instant::now() < deadline, "no {text} in {shown}");
            crate::until_next_poll().await;
        }
    }

    /// Makes the pauses of the page's scripts ten times as short.
    pub async fn hurry(&self) {
        let script = "const pause = setTimeout; window.setTimeout = (what, time) => pause(what, time / 10)";
        self.run(script, serde_json::json!([])).await;
    }

    /// Returns the path of the open page.
    pub async fn path(&self) -> String {
        let url = self.url().await;
        url.splitn(4, '/').nth(3).map(|path| format!("/{path}")).unwrap_or_default()
    }
}
