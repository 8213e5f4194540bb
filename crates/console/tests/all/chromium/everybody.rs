//! Accessibility: visitors who do not use a mouse, see poorly, or use a screen reader.

use serde_json::{Value, json};

use super::{Browser, NARROW, WIDE, driver::axe, pages, sample};

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";

impl Browser {
    async fn tab_to(&self, selector: &str) {
        for _ in 0..60 {
            self.press(TAB).await;
            if self.run("return document.activeElement.matches(arguments[0])", json!([selector])).await == true {
                return;
            }
        }
        panic!("no {selector} at {}", self.url().await);
    }

    /// Follows the focused link or button.
    async fn enter(&self) {
        self.run("window.isLeft = true", json!([])).await;
        self.press(ENTER).await;
        self.until("return window.isLeft !== true && document.readyState === 'complete'", json!([])).await;
    }

    /// Returns the faults that axe-core rates as serious or critical.
    async fn faults(&self) -> Vec<String> {
        self.run(&format!("{}; window.axe = axe", axe()), json!([])).await;
        self.faults_of(json!({})).await
    }

    /// Returns the faults of the colours, which alone depend on the colour scheme, on a page of
    /// which all faults were asked for before.
    async fn faults_of_colours(&self) -> Vec<String> {
        self.faults_of(json!({ "runOnly": { "type": "rule", "values": ["color-contrast", "link-in-text-block"] } }))
            .await
    }

    async fn faults_of(&self, rules: Value) -> Vec<String> {
        let script = "const [rules, done] = arguments; axe.run(':root', { ...rules, resultTypes: ['violations'] }).then(found => done(found.violations
            .filter(fault => ['serious', 'critical'].includes(fault.impact))
            .flatMap(fault => fault.nodes.map(node => `${fault.id}: ${node.target} ${node.failureSummary}`))))";
        let found = self.wait_for(script, json!([rules])).await;
        found.as_array().expect("a list").iter().map(Value::to_string).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: see .ci/browser"]
async fn axe_finds_no_serious_fault_on_any_page() {
    let browser = Browser::lent().await;
    let site = sample::shop().await;
    browser.until_shown(&site, "/", "search-index").await;
    let mut faults = Vec::new();
    for size in [WIDE, NARROW] {
        browser.resize(size).await;
        for (path, _) in pages::all(&site).await {
            browser.open(&site, &path).await;
            let light = browser.faults().await;
            browser.scheme("dark").await;
            let dark = browser.faults_of_colours().await;
            browser.scheme("light").await;
            for (scheme, found) in [("light", light), ("dark", dark)] {
                faults.extend(found.into_iter().map(|fault| format!("{path} {scheme} {}: {fault}", size.0)));
            }
        }
        browser.scheme("dark").await; // as in the last of the runs above
        browser.open(&site, "/queues/emails").await;
        browser.follow("form:has([value=purge]) button").await;
        faults.extend(browser.faults().await);
        // Two notices are checked: the result of an action, and the reason why another action
        // failed.
        browser.open(&site, "/queues/payments").await;
        browser.write("textarea[name=payload]", "{bad").await;
        browser.follow("form:has([value=enqueue]) button").await;
        faults.extend(browser.faults().await);
        browser.write("textarea[name=payload]", "{}").await;
        browser.follow("form:has([value=enqueue]) button").await;
        browser.follow("button.sure").await;
        browser.text("#notice").await;
        faults.extend(browser.faults().await);
    }
    assert!(faults.is_empty(), "{} faults: {:#?}", faults.len(), &faults[..faults.len().min(12)]);
    drop(browser);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: see .ci/browser"]
async fn the_tab_key_reaches_everything_and_shows_where_it_is() {
    let browser = Browser::lent().await;
    let site = sample::shop().await;
    browser.until_shown(&site, "/", "search-index").await;
    let dead = site.number("select min(id) from trunkline.dead_letters('webhooks')").await;
    for path in [
        "/",
        "/queues/emails",
        "/queues/webhooks/dead",
        "/schedules",
        "/relays",
        "/audit",
        &format!("/queues/webhooks/messages/{dead}"),
    ] {
        browser.open(&site, path).await;
        let controls = "window.left = new Set([...document.querySelectorAll('a[href], button, input, select, textarea, [tabindex=\"0\"], summary')]
            .filter(node => !node.disabled && node.type !== 'hidden' && node.checkVisibility())); return window.left.size";
        // Allows 40 more presses, because the tab key stops at each part of a time field.
        let count = browser.run(controls, json!([])).await.as_u64().expect("a number") + 40;
        let step = "const at = document.activeElement; window.left.delete(at); const style = getComputedStyle(at), box = at.getBoundingClientRect();
            return at === document.body || (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 && box.right > 0 && box.width > 0)
                ? window.left.size : at.outerHTML";
        for press in 0..=count {
            browser.press(TAB).await;
            let left = browser.run(step, json!([])).await;
            assert!(left.is_u64(), "{path}: the focus cannot be seen on {left}");
            if left == 0 {
                break;
            }
            assert!(press < count, "{path}: {left} are not reached");
        }
    }
    // Runs an action using only the keyboard.
    browser.open(&site, "/queues/emails").await;
    browser.tab_to("form:has([value=pause]) button").await;
    browser.enter().await;
    browser.tab_to("button.sure").await;
    browser.enter().await;
    assert_eq!(browser.text("#notice").await, "Paused queue emails.");
    assert_eq!(site.number("select count(*) from trunkline.audit").await, 1);
    drop(browser);
    site.end().await;
}
