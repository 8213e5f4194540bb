//! Logins, and attacks by other sites on a visitor who has logged in.

use serde_json::json;
use tokio::net::TcpListener;
use trunkline::{Queue, Settings};
use trunkline_console::web::{Access, Role, User, hash};

use super::{Browser, NARROW, SOON, WIDE};
use crate::{
    browser::{form, send},
    web::Site,
};

const PASSWORD: &str = "correct horse battery";

async fn with_users() -> Site {
    let of = |name: &str, role| User { name: name.to_owned(), role, hash: hash(PASSWORD).expect("hashed") };
    let users = vec![of("ada", Role::Operator), of("eve", Role::Viewer)];
    let site = Site::with(|console| console.access(Access::Passwords(users))).await;
    site.db.create_queue("q", &Settings::new("text")).await.expect("created");
    site
}

impl Browser {
    async fn log_in(&self, site: &Site, name: &str, password: &str) {
        self.open(site, "/").await;
        self.write("input[name=name]", name).await;
        self.write("input[name=password]", password).await;
        self.follow("form.enqueue button").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: see .ci/browser"]
async fn wrong_passwords_are_refused_and_soon_not_even_tried() {
    let browser = Browser::lent().await;
    let site = with_users().await;
    for size in [WIDE, NARROW] {
        browser.resize(size).await;
        browser.log_in(&site, "ada", "not the password").await;
        assert_eq!(browser.path().await, "/login");
        assert!(browser.text("[role=alert]").await.contains("wrong"), "{}", browser.shown().await);
        browser.fits().await;
        browser.log_in(&site, "ada", PASSWORD).await;
        assert_eq!(browser.path().await, "/");
        browser.fits().await;
        browser.follow("form.out button").await;
        browser.open(&site, "/queues/q").await;
        assert_eq!(browser.path().await, "/login");
    }
    for _ in 0..8 {
        browser.log_in(&site, "nobody", "whatever it is").await;
    }
    browser.log_in(&site, "ada", PASSWORD).await;
    assert!(browser.shown().await.contains("too many"), "{}", browser.shown().await);
    browser.said().await; // discards the browser's messages about refused logins
    drop(browser);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: see .ci/browser"]
async fn viewer_and_read_only_console_have_no_enabled_button() {
    let browser = Browser::lent().await;
    let site = with_users().await;
    let enabled = "return [...document.querySelectorAll('main button')].filter(button => !button.disabled).length";
    browser.log_in(&site, "eve", PASSWORD).await;
    browser.open(&site, "/queues/q").await;
    assert_eq!(browser.run(enabled, json!([])).await, 0);
    assert!(browser.text("footer").await.contains("you are a viewer"));
    // If a visitor enables the button manually, the server refuses the action.
    browser.run("document.querySelector('main button').disabled = false", json!([])).await;
    browser.follow("main button").await;
    assert!(browser.shown().await.contains("viewer"), "{}", browser.shown().await);
    assert_eq!(site.number("select count(*) from trunkline.audit").await, 0);
    site.end().await;

    let site = Site::with(|console| console.read_only(true)).await;
    site.db.create_queue("q", &Settings::new("text")).await.expect("created");
    browser.open(&site, "/queues/q").await;
    assert_eq!(browser.run(enabled, json!([])).await, 0);
    assert!(browser.text("footer").await.contains("--read-only"));
    browser.said().await;
    drop(browser);
    site.end().await;
}

/// Serves another site with two pages: one sends a form to the console as soon as it is opened, and
/// one embeds the console in a frame.
async fn elsewhere(target: std::net::SocketAddr, csrf: String) -> (u16, tokio::task::JoinHandle<()>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let page = format!(
        "<!doctype html><form method=post action='http://{target}/act'><input name=verb value=pause><input name=queue value=q>\
         <input name=csrf value='{csrf}'></form><iframe src='http://{target}/queues/q'></iframe>\
         <script>if (location.search === '?send') document.forms[0].submit();</script>"
    );
    let serving = tokio::spawn(async move {
        loop {
            let Ok((mut stream, _)) = listener.accept().await else { return };
            let page = page.clone();
            // A task for each: a browser opens connections on which it asks nothing.
            tokio::spawn(async move {
                let mut asked = Vec::new();
                while !asked.ends_with(b"\r\n\r\n") && stream.read_buf(&mut asked).await.is_ok_and(|read| read > 0) {}
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n";
                let _ = stream.write_all(format!("{head}{page}").as_bytes()).await;
            });
        }
    });
    (port, serving)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: see .ci/browser"]
async fn another_site_can_neither_act_nor_frame() {
    let browser = Browser::lent().await;
    let site = with_users().await;
    browser.log_in(&site, "ada", PASSWORD).await;
    browser.open(&site, "/queues/q").await;
    // Assumes the worst case: the other site knows the token of the session.
    let csrf = browser.run("return document.querySelector('[name=csrf]').value", json!([])).await;
    let (port, serving) = elsewhere(site.address, csrf.as_str().expect("text").to_owned()).await;
    // The first site's host name differs from the console's. The second site differs only in its
    // port, because cookies do not distinguish ports.
    for other in [format!("http://localhost:{port}/?send"), format!("http://127.0.0.1:{port}/?send")] {
        browser.goto(&other).await;
        browser.until("return document.body.innerText.includes('nothing was done')", json!([])).await;
    }
    assert_eq!(site.number("select count(*) from trunkline.audit").await, 0);
    browser.said().await;
    browser.goto(&format!("http://127.0.0.1:{port}/")).await;
    let deadline = std::time::Instant::now() + SOON;
    loop {
        if browser.said().await.iter().any(|said| said.contains("frame")) {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "the console let itself be framed");
        crate::until_next_poll().await;
    }
    // The console's own page can send the same form successfully.
    browser.open(&site, "/queues/q").await;
    browser.follow("form:has([value=pause]) button").await;
    browser.follow("button.sure").await;
    assert_eq!(site.number("select count(*) from trunkline.audit").await, 1);

    // A form with the token of another session, or without a token, is refused.
    let cookies = browser.command("Network.getCookies", json!({ "urls": [browser.url().await] })).await;
    let cookie = &cookies["cookies"][0];
    assert_eq!((&cookie["httpOnly"], &cookie["sameSite"]), (&json!(true), &json!("Strict")), "{cookies}");
    let own = format!("{}={}", cookie["name"].as_str().expect("text"), cookie["value"].as_str().expect("text"));
    browser.command("Network.clearBrowserCookies", json!({})).await;
    browser.log_in(&site, "ada", PASSWORD).await;
    browser.open(&site, "/queues/q").await;
    let other = browser.run("return document.querySelector('[name=csrf]').value", json!([])).await;
    for token in [other.as_str().expect("text"), ""] {
        let body = form(&[("verb", "resume"), ("queue", "q"), ("csrf", token)]);
        assert_eq!(send(site.address, "POST", "/act", &[("cookie", &own)], &body).await.status, 403);
    }
    assert_eq!(site.number("select count(*) from trunkline.audit").await, 1);
    serving.abort();
    browser.said().await;
    drop(browser);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: see .ci/browser"]
async fn page_whose_session_ended_shows_this_until_the_next_login() {
    let browser = Browser::lent().await;
    let site = with_users().await;
    let queue: Queue<String> = site.db.queue("q").await.expect("opened");
    browser.log_in(&site, "ada", PASSWORD).await;
    browser.open(&site, "/queues/q").await;
    browser.hurry().await;
    // Another page of the same browser logs out, and later in again.
    let send = "const [path, fields, done] = arguments;
        fetch(path, { method: 'POST', body: new URLSearchParams(fields) }).then(answer => done(answer.ok))";
    let csrf = browser.run("return document.querySelector('[name=csrf]').value", json!([])).await;
    assert_eq!(browser.wait_for(send, json!(["/logout", { "csrf": csrf }])).await, true);
    browser.until("return document.querySelector('#problem').innerText.includes('log in')", json!([])).await;
    let ada = json!(["/login", { "name": "ada", "password": PASSWORD }]);
    assert_eq!(browser.wait_for(send, ada).await, true);
    queue.enqueue(&"one".to_owned()).await.expect("enqueued");
    let moves = "return document.querySelector('#problem').hidden
        && document.querySelector('.numbers [data-cell=due]').textContent === '1'";
    browser.until(moves, json!([])).await;
    browser.said().await;
    drop(browser);
    site.end().await;
}

/// Cookies do not distinguish the ports of a host.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: see .ci/browser"]
async fn consoles_of_one_host_keep_their_sessions() {
    let browser = Browser::lent().await;
    let (one, other) = (with_users().await, with_users().await);
    browser.log_in(&one, "ada", PASSWORD).await;
    browser.log_in(&other, "ada", PASSWORD).await;
    for site in [&one, &other] {
        browser.open(site, "/queues/q").await;
        assert_eq!(browser.path().await, "/queues/q");
    }
    browser.open(&one, "/").await;
    browser.follow("form.out button").await;
    for (site, path) in [(&one, "/login"), (&other, "/queues/q")] {
        browser.open(site, "/queues/q").await;
        assert_eq!(browser.path().await, path);
    }
    browser.said().await;
    drop(browser);
    one.end().await;
    other.end().await;
}
