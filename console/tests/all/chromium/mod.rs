//! The console in a browser, as people have it.

mod driver;
mod sample;
mod pages;
mod pictures;

pub use driver::{Browser, NARROW, SOON, Size, WIDE, lent};

use crate::web::Site;

impl Browser {
    /// Opens a page of the console.
    pub async fn open(&self, site: &Site, path: &str) {
        self.goto(&format!("http://{}{path}", site.address)).await;
    }

    /// The path of the page that is open.
    pub async fn path(&self) -> String {
        let url = self.url().await;
        url.splitn(4, '/').nth(3).map(|path| format!("/{path}")).unwrap_or_default()
    }
}
