//! Drives Chromium with the few calls of the `WebDriver` protocol that the tests need, over plain
//! HTTP.

use std::{
    fs,
    ops::Deref,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{Semaphore, SemaphorePermit},
};

/// The maximum wait for live numbers. The console samples less often if a sample takes long, as on
/// a busy machine.
pub const SOON: Duration = Duration::from_secs(150);

const MISSING: &str = "no chromium, chromedriver and axe.min.js: put their folder first in PATH (see .ci/browser)";

/// The shell script that runs the driver. It ends when its input closes, however the test process
/// ends. It ends the browser first, then the driver, and finally removes their folder.
const RUN: &str = r#""$0" --port=0 >"$1/log" 2>&1 & driver=$!
    browsers() { cat /proc/$driver/task/*/children 2>/dev/null; }
    cat >/dev/null; started=$(browsers); tries=0
    kill $started 2>/dev/null
    while [ -n "$(browsers)" ] && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
    kill -9 $(browsers) 2>/dev/null; kill $driver; wait $driver 2>/dev/null; rm -rf "$1""#;

const FLAGS: [&str; 13] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--window-size=1280,800",
];

/// The places for browsers, as many as tests run well beside each other.
static PLACES: Semaphore = Semaphore::const_new(2);
/// The browsers that no test uses.
static IDLE: Mutex<Vec<Browser>> = Mutex::new(Vec::new());

fn idle() -> MutexGuard<'static, Vec<Browser>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub struct Browser {
    driver: String,
    session: String,
    /// The shell, which runs until its input closes, at the latest at the end of this process.
    _running: Child,
}

/// One test's use of a browser, until dropped.
pub struct Lent {
    browser: Option<Browser>,
    _place: SemaphorePermit<'static>,
}

impl Deref for Lent {
    type Target = Browser;

    fn deref(&self) -> &Browser {
        self.browser.as_ref().expect("it is there until the drop")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        idle().extend(self.browser.take());
    }
}

/// Returns the folder that contains the browser, its driver and axe-core.
fn installed() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .find(|folder| ["chromium", "chromedriver", "axe.min.js"].iter().all(|file| folder.join(file).exists()))
        .expect(MISSING)
}

/// Returns the source of axe-core.
pub fn axe() -> String {
    fs::read_to_string(installed().join("axe.min.js")).expect("readable")
}

/// The width and height of the page, and true for a phone's page.
pub type Size = (u32, u32, bool);
pub const WIDE: Size = (1280, 800, false);
pub const NARROW: Size = (360, 640, true);

impl Browser {
    /// Returns the browser in a fresh state: no cookies, wide, light colours.
    pub async fn lent() -> Lent {
        let place = PLACES.acquire().await.expect("never closed");
        let idle = idle().pop();
        let browser = match idle {
            Some(browser) => browser,
            None => Self::start(&installed()).await,
        };
        let browser = Lent { browser: Some(browser), _place: place };
        browser.goto("about:blank").await;
        browser.command("Network.clearBrowserCookies", json!({})).await;
        browser.command("Emulation.setScriptExecutionDisabled", json!({ "value": false })).await;
        browser.resize(WIDE).await;
        browser.scheme("light").await;
        browser.said().await;
        browser
    }

    async fn start(programs: &Path) -> Self {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let name = format!("trunkline-chromium-{}-{}", std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).expect("a folder is made");
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(RUN).arg(programs.join("chromedriver")).arg(&folder).stdin(Stdio::piped());
        let running = command.process_group(0).spawn().expect("started");
        let deadline = Instant::now() + SOON;
        let port = loop {
            let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
            let port = log.split("successfully on port ").nth(1).and_then(|rest| rest.split('.').next());
            if let Some(port) = port {
                break port.to_owned();
            }
            assert!(Instant::now() < deadline, "the driver does not listen: {log}");
            crate::until_next_poll().await;
        };
        let driver = format!("127.0.0.1:{port}");
        let profile = format!("--user-data-dir={}", folder.join("profile").display());
        let flags: Vec<&str> = FLAGS.into_iter().chain([profile.as_str()]).collect();
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "unhandledPromptBehavior": "ignore",
            "goog:loggingPrefs": { "browser": "ALL" },
            "goog:chromeOptions": { "binary": programs.join("chromium"), "args": flags },
        } } });
        let answer = ask(&driver, "POST", "/session", &wanted).await.expect("a session");
        let session = format!("/session/{}", answer["sessionId"].as_str().expect("an id"));
        Self { driver, session, _running: running }
    }

    async fn call(&self, method: &str, verb: &str, body: Value) -> Value {
        let answer = ask(&self.driver, method, &format!("{}{verb}", self.session), &body).await;
        answer.unwrap_or_else(|why| panic!("{verb} {body}: {why}"))
    }

    /// Sends a command of the browser's own protocol, which can do more than `WebDriver`.
    pub async fn command(&self, name: &str, params: Value) -> Value {
        self.call("POST", "/goog/cdp/execute", json!({ "cmd": name, "params": params })).await
    }

    pub async fn goto(&self, url: &str) {
        self.call("POST", "/url", json!({ "url": url })).await;
    }

    pub async fn reload(&self) {
        self.call("POST", "/refresh", json!({})).await;
    }

    pub async fn back(&self) {
        self.call("POST", "/back", json!({})).await;
    }

    pub async fn url(&self) -> String {
        self.call("GET", "/url", Value::Null).await.as_str().expect("text").to_owned()
    }

    /// Runs a script, and returns its value. The script reads its arguments from `arguments[0]`
    /// onward.
    pub async fn run(&self, script: &str, arguments: Value) -> Value {
        self.call("POST", "/execute/sync", json!({ "script": script, "args": arguments })).await
    }

    /// Runs a script, and returns the value that the script passes to its last argument, a
    /// callback.
    pub async fn wait_for(&self, script: &str, arguments: Value) -> Value {
        self.call("POST", "/execute/async", json!({ "script": script, "args": arguments })).await
    }

    /// Runs a script until its value is neither false nor null.
    pub async fn until(&self, script: &str, arguments: Value) -> Value {
        let deadline = Instant::now() + SOON;
        loop {
            let said = self.run(script, arguments.clone()).await;
            if !matches!(said, Value::Null | Value::Bool(false)) {
                return said;
            }
            assert!(
                Instant::now() < deadline,
                "{script} {arguments}: never, at {}\n{}",
                self.url().await,
                self.shown().await
            );
            crate::until_next_poll().await;
        }
    }

    /// Returns the whole visible text of the page.
    pub async fn shown(&self) -> String {
        let text = self.run("return document.body ? document.body.innerText : ''", json!([])).await;
        text.as_str().unwrap_or_default().to_owned()
    }

    async fn found(&self, selector: &str) -> String {
        let wanted = json!({ "using": "css selector", "value": selector });
        let answer = ask(&self.driver, "POST", &format!("{}/element", self.session), &wanted).await;
        let element = match answer {
            Ok(element) => element,
            Err(why) => panic!("{selector} at {}: {why}", self.url().await),
        };
        let id = element.as_object().and_then(|names| names.values().next()).and_then(Value::as_str);
        format!("/element/{}", id.expect("an id"))
    }

    /// Returns the visible text of an element.
    pub async fn text(&self, selector: &str) -> String {
        let script = "const found = document.querySelector(arguments[0]); return found && found.innerText";
        match self.run(script, json!([selector])).await {
            Value::String(text) => text,
            _ => panic!("no {selector} at {}: {}", self.url().await, self.shown().await),
        }
    }

    pub async fn click(&self, selector: &str) {
        let element = self.found(selector).await;
        self.call("POST", &format!("{element}/click"), json!({})).await;
    }

    /// Clicks on a link or button, and waits for the page that it leads to.
    pub async fn follow(&self, selector: &str) {
        self.run("window.isLeft = true", json!([])).await;
        self.click(selector).await;
        self.until("return window.isLeft !== true && document.readyState === 'complete'", json!([])).await;
    }

    /// Replaces the text of a field.
    pub async fn write(&self, selector: &str, text: &str) {
        let element = self.found(selector).await;
        self.call("POST", &format!("{element}/clear"), json!({})).await;
        self.call("POST", &format!("{element}/value"), json!({ "text": text })).await;
    }

    /// Presses and releases a key.
    pub async fn press(&self, key: &str) {
        let actions = json!([{ "type": "keyDown", "value": key }, { "type": "keyUp", "value": key }]);
        self.call("POST", "/actions", json!({ "actions": [{ "type": "key", "id": "hand", "actions": actions }] }))
            .await;
    }

    pub async fn resize(&self, (width, height, mobile): Size) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.command("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// Sets the colour scheme of the system: `dark` or `light`.
    pub async fn scheme(&self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.command("Emulation.setEmulatedMedia", json!({ "features": features })).await;
    }

    /// Returns a screenshot of the window, as WebP.
    pub async fn picture(&self) -> Vec<u8> {
        let picture = self.command("Page.captureScreenshot", json!({ "format": "webp", "quality": 85 })).await;
        BASE64_STANDARD.decode(picture["data"].as_str().expect("text")).expect("base64")
    }

    /// Returns true if a dialog is open.
    pub async fn is_stopped(&self) -> bool {
        ask(&self.driver, "GET", &format!("{}/alert/text", self.session), &Value::Null).await.is_ok()
    }

    /// Returns the browser's messages since the last call: errors of scripts, violations of the
    /// content policy, and files that failed to load.
    pub async fn said(&self) -> Vec<String> {
        let lines = self.call("POST", "/se/log", json!({ "type": "browser" })).await;
        lines.as_array().expect("a list").iter().map(|line| line["message"].to_string()).collect()
    }
}

/// Sends one call. Returns its value, or the error of the driver.
async fn ask(driver: &str, method: &str, path: &str, body: &Value) -> Result<Value, String> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut stream = TcpStream::connect(driver).await.map_err(|error| error.to_string())?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {driver}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await.map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    let value = loop {
        if stream.read_buf(&mut answer).await.map_err(|error| error.to_string())? == 0 {
            return Err(format!("cut off: {}", String::from_utf8_lossy(&answer)));
        }
        if let Some(value) = whole(&answer) {
            break value;
        }
    };
    match value["value"].get("error") {
        Some(error) => Err(format!("{error}: {}", value["value"]["message"].as_str().unwrap_or_default())),
        None => Ok(value["value"].clone()),
    }
}

/// Returns the body of a response once it is complete.
fn whole(answer: &[u8]) -> Option<Value> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let length: usize = head.split("content-length:").nth(1)?.lines().next()?.trim().parse().ok()?;
    let body = answer.get(end + 4..end + 4 + length)?;
    serde_json::from_slice(body).ok()
}
