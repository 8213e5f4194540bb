//! Logins, and the rights of visitors.

use tokio::net::TcpListener;
use trunkline::{Db, Settings};
use trunkline_console::web::{Access, Console, Role, User, hash, users};

use super::{Site, connect};
use crate::browser::{form, get, post, send};

const PASSWORD: &str = "correct horse battery";
const TOKEN: &str = "00112233445566778899aabbccddeeff";

fn user(name: &str, role: Role) -> User {
    User { name: name.to_owned(), role, hash: hash(PASSWORD).expect("hashed") }
}

async fn with_users() -> Site {
    let users = vec![user("ada", Role::Operator), user("eve", Role::Viewer)];
    let site = Site::with(|console| console.access(Access::Passwords(users)).token("a token of 16 signs")).await;
    site.db.create_queue("q", &Settings::new("text")).await.expect("created");
    site
}

/// Logs in. Returns the cookie.
async fn log_in(site: &Site, name: &str) -> String {
    let answer = post(site.address, "/login", &[("name", name), ("password", PASSWORD)]).await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")), "{}", answer.body);
    let cookie = answer.header("set-cookie").expect("a cookie");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    cookie.split(';').next().unwrap_or_default().to_owned()
}

async fn audited(site: &Site) -> i64 {
    site.number("select count(*) from trunkline.audit").await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_users_it_answers_to_this_machine_s_names_alone() {
    let site = Site::new().await;
    for host in ["evil.example", "evil.example:7070", "127.0.0.1.evil.example"] {
        assert_eq!(send(site.address, "GET", "/", &[("host", host)], "").await.status, 421, "{host}");
    }
    assert_eq!(send(site.address, "GET", "/", &[("host", "localhost:1")], "").await.status, 200);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_users_it_serves_the_loopback_alone() {
    let site = Site::new().await;
    let listener = TcpListener::bind("0.0.0.0:0").await.expect("a port");
    let refused = Console::new(site.db.clone()).serve(listener, std::future::pending()).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("other machines")));
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_forms_do_nothing() {
    let site = Site::new().await;
    site.db.create_queue("q", &Settings::new("text")).await.expect("created");
    let csrf = get(site.address, "/queues/q").await.csrf();
    let body = form(&[("verb", "pause"), ("queue", "q"), ("token", TOKEN), ("csrf", &csrf)]);
    for (headers, body) in [
        (vec![], form(&[("verb", "pause"), ("queue", "q")])),
        (vec![], form(&[("verb", "pause"), ("queue", "q"), ("csrf", "0")])),
        (vec![("origin", "http://evil.example")], body.clone()),
        (vec![("origin", "null")], body.clone()),
        (vec![("sec-fetch-site", "cross-site")], body.clone()),
    ] {
        let answer = send(site.address, "POST", "/act", &headers, &body).await;
        assert_eq!(answer.status, 403, "{headers:?}");
    }
    assert_eq!(audited(&site).await, 0);
    let own = format!("http://{}", site.address);
    let answer =
        send(site.address, "POST", "/act", &[("origin", &own), ("sec-fetch-site", "same-origin")], &body).await;
    assert_eq!((answer.status, audited(&site).await), (303, 1));
    site.end().await;
}

/// The proxy sends its own name for the console as the host, as nginx does by default.
#[tokio::test(flavor = "multi_thread")]
async fn form_from_behind_a_proxy_that_changes_the_host_is_judged_by_the_browser() {
    let site = Site::new().await;
    site.db.create_queue("q", &Settings::new("text")).await.expect("created");
    let csrf = get(site.address, "/queues/q").await.csrf();
    let body = form(&[("verb", "pause"), ("queue", "q"), ("token", TOKEN), ("csrf", &csrf)]);
    let origin = ("origin", "https://console.example");
    for site_of_the_form in [None, Some("cross-site"), Some("same-site"), Some("none"), Some("same-origin, x")] {
        let headers: Vec<_> = [origin].into_iter().chain(site_of_the_form.map(|is| ("sec-fetch-site", is))).collect();
        let answer = send(site.address, "POST", "/act", &headers, &body).await;
        assert_eq!((answer.status, audited(&site).await), (403, 0), "{headers:?}");
        assert!(answer.body.contains("proxy_set_header Host $http_host"), "{}", answer.body);
    }
    let headers = [origin, ("sec-fetch-site", "same-origin")];
    let answer = send(site.address, "POST", "/act", &headers, &body).await;
    assert_eq!((answer.status, audited(&site).await), (303, 1), "{}", answer.body);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_closed_without_a_password() {
    let site = with_users().await;
    for path in
        ["/", "/queues/q", "/queues/q/messages", "/queues/q/dead", "/audit", "/doctor", "/schedules", "/nothing"]
    {
        let answer = get(site.address, path).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some("/login")), "{path}");
    }
    assert_eq!(get(site.address, "/live").await.status, 401);
    assert_eq!(post(site.address, "/act", &[("verb", "pause"), ("queue", "q")]).await.status, 401);
    assert_eq!(get(site.address, "/healthz").await.body, "ok\n");
    let cookie = log_in(&site, "ada").await;
    let page = send(site.address, "GET", "/queues/q", &[("cookie", &cookie)], "").await;
    assert_eq!(page.status, 200);
    let csrf = page.csrf();
    let body = form(&[("verb", "pause"), ("queue", "q"), ("token", TOKEN), ("csrf", &csrf)]);
    assert_eq!(send(site.address, "POST", "/act", &[("cookie", &cookie)], &body).await.status, 303);
    let who = site.sql.query_one("select who from trunkline.audit", &[]).await.expect("an entry").get::<_, String>(0);
    assert_eq!(who, "ada");
    // The form token of one session is invalid in another session.
    let other = log_in(&site, "ada").await;
    assert_eq!(send(site.address, "POST", "/act", &[("cookie", &other)], &body).await.status, 403);
    let out = form(&[("csrf", &csrf)]);
    assert_eq!(send(site.address, "POST", "/logout", &[("cookie", &cookie)], &out).await.status, 303);
    assert_eq!(send(site.address, "GET", "/", &[("cookie", &cookie)], "").await.status, 303);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn viewers_look_and_do_nothing() {
    let site = with_users().await;
    let cookie = log_in(&site, "eve").await;
    let page = send(site.address, "GET", "/queues/q", &[("cookie", &cookie)], "").await;
    assert!(page.body.contains("<button disabled>Pause") && page.body.contains("you are a viewer"), "{}", page.body);
    let body = form(&[("verb", "pause"), ("queue", "q"), ("csrf", &page.csrf())]);
    for path in ["/act/ask", "/act"] {
        assert_eq!(send(site.address, "POST", path, &[("cookie", &cookie)], &body).await.status, 403);
    }
    let token = [("authorization", "Bearer a token of 16 signs")];
    assert_eq!(send(site.address, "GET", "/", &token, "").await.status, 200);
    assert_eq!(send(site.address, "POST", "/act", &token, &body).await.status, 403);
    for (scheme, status) in [("bearer", 200), ("BEARER", 200), ("Bearer ", 200), ("Basic", 303), ("Bearers", 303)] {
        let header = format!("{scheme} a token of 16 signs");
        assert_eq!(send(site.address, "GET", "/", &[("authorization", &header)], "").await.status, status, "{header}");
    }
    assert_eq!(get(site.address, "/metrics").await.status, 401);
    let metrics = send(site.address, "GET", "/metrics", &token, "").await;
    assert_eq!(metrics.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert!(metrics.body.contains("trunkline_up 1\n") && metrics.body.contains("queue=\"q\""), "{}", metrics.body);
    let wrong = [("authorization", "Bearer a token of 16 sigms")];
    assert_eq!(send(site.address, "GET", "/", &wrong, "").await.status, 303);
    assert_eq!(audited(&site).await, 0);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn guesses_are_few() {
    let site = with_users().await;
    for name in ["ada", "nobody"] {
        for _ in 0..5 {
            let answer = post(site.address, "/login", &[("name", name), ("password", "wrong")]).await;
            assert_eq!(answer.status, 401);
            assert!(answer.body.contains("the name or the password is wrong"), "{}", answer.body);
        }
    }
    let answer = post(site.address, "/login", &[("name", "ada"), ("password", PASSWORD)]).await;
    assert_eq!(answer.status, 429);
    assert!(answer.body.contains("wait five minutes"), "{}", answer.body);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_says_who_it_is() {
    let access = || Access::Proxy { header: "x-forwarded-user".to_owned(), operators: vec!["ada".to_owned()] };
    let site = Site::with(|console| console.access(access())).await;
    site.db.create_queue("q", &Settings::new("text")).await.expect("created");
    assert_eq!(get(site.address, "/").await.status, 401);
    assert_eq!(
        send(site.address, "GET", "/", &[("x-forwarded-user", "ada"), ("x-forwarded-user", "eve")], "").await.status,
        401
    );
    let page = send(site.address, "GET", "/queues/q", &[("x-forwarded-user", "eve")], "").await;
    assert!(page.body.contains("you are a viewer"), "{}", page.body);
    let body = form(&[("verb", "pause"), ("queue", "q"), ("token", TOKEN), ("csrf", &page.csrf())]);
    assert_eq!(send(site.address, "POST", "/act", &[("x-forwarded-user", "eve")], &body).await.status, 403);
    assert_eq!(send(site.address, "POST", "/act", &[("x-forwarded-user", "ada")], &body).await.status, 303);
    assert_eq!(audited(&site).await, 1);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_is_for_everybody() {
    let site = Site::with(|console| console.read_only(true)).await;
    site.db.create_queue("q", &Settings::new("text")).await.expect("created");
    let page = get(site.address, "/queues/q").await;
    assert!(page.body.contains("--read-only") && !page.body.contains("<button>Pause"), "{}", page.body);
    let answer = post(site.address, "/act", &[("verb", "pause"), ("queue", "q"), ("csrf", &page.csrf())]).await;
    assert_eq!((answer.status, audited(&site).await), (403, 0));
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn role_is_held_to_its_rights_and_pages_say_so() {
    let owner = Site::new().await;
    owner.db.create_queue("mine", &Settings::new("text")).await.expect("created");
    owner.db.create_queue("other", &Settings::new("text")).await.expect("created");
    let role = format!("console_{}", owner.address.port());
    owner.sql.batch_execute(&format!("create role {role} login")).await.expect("a role");
    let named = owner.sql.query_one("select current_database()", &[]).await.expect("asked").get::<_, String>(0);
    let socket = owner.sql.query_one(
        "select trim(both '\"' from split_part(current_setting('unix_socket_directories'), ',', 1)), current_setting('port')",
        &[],
    );
    let socket = socket.await.expect("asked");
    let url =
        format!("host={} port={} user={role} dbname={named}", socket.get::<_, String>(0), socket.get::<_, String>(1));
    owner.db.grant(&[(trunkline::Right::Operator, role.as_str())], Some("mine")).await.expect("granted");
    let db = Db::connect(&url).await.expect("connected");
    let site = Site::of(url.clone(), db, connect(&url).await, |console| console).await;
    let csrf = get(site.address, "/queues/mine").await.csrf();
    let purge =
        |queue| [("verb", "purge"), ("queue", queue), ("confirm", queue), ("token", TOKEN), ("csrf", csrf.as_str())];
    let answer = post(site.address, "/act", &purge("mine")).await;
    assert_eq!(answer.status, 303, "{}", answer.body);
    let answer = post(site.address, "/act", &purge("other")).await;
    assert_eq!(answer.status, 403, "{}", answer.body);
    // Checks for each queue that actions which the role may not perform are disabled.
    let buttons = async |queue: &str| {
        let page = get(site.address, &format!("/queues/{queue}")).await.body;
        ["Pause …", "Purge …", "Enqueue …"].map(|label| page.contains(&format!("<button>{label}")))
    };
    assert_eq!(buttons("mine").await, [false, true, true], "a pause is the owner's");
    assert_eq!(buttons("other").await, [false; 3]);
    let page = get(site.address, "/queues/other").await;
    assert!(page.body.contains("has no right to: ") && page.body.contains("purge, cancel"), "{}", page.body);
    assert_eq!(get(site.address, "/audit").await.status, 403); // the audit of all queues is for operators of all queues
    let one_is_hidden = async {
        loop {
            let overview = get(site.address, "/").await;
            let verdict = overview.text_after(r#"<h1 id="verdict">"#);
            // repeats while the numbers are old, as on a busy machine
            let is_old = overview.body.contains("The numbers are not being updated");
            if verdict == "Needs attention: 1 not visible" && !is_old {
                return;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(150), one_is_hidden).await.expect("the overview says so");
    assert_eq!(audited(&owner).await, 1);
    site.end().await;
    owner.sql.batch_execute(&format!("drop owned by {role}; drop role {role}")).await.expect("dropped");
    owner.end().await;
}

#[test]
fn file_of_users_is_read_or_refused_with_the_line() {
    let hash = hash(PASSWORD).expect("hashed");
    let read = users(&format!("# ours\n\nada:operator:{hash}\neve:viewer:{hash}\n")).expect("users");
    assert_eq!(
        read.iter().map(|user| (user.name.as_str(), user.role)).collect::<Vec<_>>(),
        [("ada", Role::Operator), ("eve", Role::Viewer)]
    );
    let nameless = format!(":viewer:{hash}");
    let twice = format!("ada:viewer:{hash}\neve:viewer:{hash}\nada:operator:{hash}");
    for (text, why) in [
        ("", "contains no users"),
        ("ada", "line 1: it is not in the form name:role:hash"),
        ("#\nada:king:x", "line 2: the role is neither"),
        ("ada:viewer:secret", "line 1: the hash is not an argon2 hash"),
        (nameless.as_str(), "line 1: the name is empty"),
        (twice.as_str(), "line 3: an earlier line also has the name \"ada\""),
    ] {
        assert!(users(text).is_err_and(|said| said.contains(why)), "{text}");
    }
    assert!(trunkline_console::web::hash("short").is_err_and(|why| why.contains("twelve")));
}

/// A browser sends a cookie to all ports of a host.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_consoles_on_one_host_have_cookies_of_their_own() {
    let (one, other) = (with_users().await, with_users().await);
    let both = format!("{}; {}", log_in(&one, "ada").await, log_in(&other, "eve").await);
    for (site, name) in [(&one, "ada"), (&other, "eve")] {
        let page = send(site.address, "GET", "/", &[("cookie", &both)], "").await;
        assert!(page.status == 200 && page.body.contains(&format!("Log out {name}")), "{}", page.body);
    }
    // Behind a proxy, the cookie's name contains the port that the browser uses.
    let ada = form(&[("name", "ada"), ("password", PASSWORD)]);
    for (host, name) in [
        ("console.example", "trunkline_console="),
        ("console.example:8443", "trunkline_console_8443="),
        ("[::1]", "trunkline_console="),
        ("[::1]:7070", "trunkline_console_7070="),
    ] {
        let answer = send(one.address, "POST", "/login", &[("host", host)], &ada).await;
        let cookie = answer.header("set-cookie").expect("a cookie");
        assert!(cookie.starts_with(name), "{host}: {cookie}");
        let own = cookie.split(';').next().unwrap_or_default();
        assert_eq!(send(one.address, "GET", "/", &[("host", host), ("cookie", own)], "").await.status, 200, "{host}");
    }
    one.end().await;
    other.end().await;
}
