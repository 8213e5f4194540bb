//! A form acts only once, and a form that fails keeps the typed text.

use trunkline::{Db, Queue, Settings};

use super::{
    Site, connect,
    deeds::{followed, sent},
};
use crate::browser::{get, post};

async fn queue(site: &Site, name: &str, of: &str) {
    site.db.create_queue(name, &Settings::new(of)).await.expect("created");
}

async fn entries(site: &Site) -> i64 {
    site.number("select count(*) from trunkline.audit").await
}

#[tokio::test(flavor = "multi_thread")]
async fn form_that_is_sent_twice_acts_once() {
    let site = Site::new().await;
    queue(&site, "q", "text").await;
    let fields = [("verb", "enqueue"), ("queue", "q"), ("payload", "only one")];
    let csrf = get(site.address, "/queues/q").await.csrf();
    let asked = post(site.address, "/act/ask", &[&fields[..], &[("csrf", &csrf)]].concat()).await;
    let token = asked.hidden("token");
    let form = |csrf| [&fields[..], &[("csrf", csrf), ("token", token.as_str())]].concat();
    let first = followed(&site, post(site.address, "/act", &form(&csrf)).await).await;
    assert!(first.body.contains("Enqueued a message into q."), "{}", first.body);
    let id = site.number("select id from trunkline.messages('q')").await;
    assert!(first.body.contains(&format!("/queues/q/messages/{id}\">Message {id}</a>")), "{}", first.body);
    let again = followed(&site, post(site.address, "/act", &form(&csrf)).await).await;
    assert!(again.body.contains("This form was already submitted, so nothing was done again."), "{}", again.body);

    // Another console of the same database does not accept the form either.
    let db = Db::connect(&site.url).await.expect("connected");
    let other = Site::of(site.url.clone(), db, connect(&site.url).await, |console| console).await;
    let csrf = get(other.address, "/queues/q").await.csrf();
    let again = followed(&other, post(other.address, "/act", &form(&csrf)).await).await;
    assert!(again.body.contains("This form was already submitted"), "{}", again.body);
    assert_eq!((entries(&site).await, site.number("select due from trunkline.stats('q')").await), (1, 1));

    // If two requests arrive at the same time, the second waits for the first and is rolled back.
    let asked = post(
        site.address,
        "/act/ask",
        &[&fields[..], &[("csrf", &get(site.address, "/queues/q").await.csrf())]].concat(),
    )
    .await;
    let (csrf, token) = (asked.hidden("csrf"), asked.hidden("token"));
    let form = [&fields[..], &[("csrf", &csrf), ("token", &token)]].concat();
    let (one, two) = tokio::join!(post(site.address, "/act", &form), post(site.address, "/act", &form));
    assert_eq!((one.status, two.status), (303, 303), "{} {}", one.body, two.body);
    assert_eq!((entries(&site).await, site.number("select due from trunkline.stats('q')").await), (2, 2));
    other.end().await;
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn form_without_a_token_does_nothing() {
    let site = Site::new().await;
    queue(&site, "q", "text").await;
    let csrf = get(site.address, "/queues/q").await.csrf();
    for token in ["", "1", "'; drop table trunkline.audit; select '1", "00112233-4455-6677-8899-aabbccddeeff"] {
        let form = [("verb", "pause"), ("queue", "q"), ("csrf", &*csrf), ("token", token)];
        let answer = post(site.address, "/act", &form).await;
        assert_eq!((answer.status, entries(&site).await), (400, 0), "{token}");
    }
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payload_that_is_too_long_is_not_asked() {
    let site = Site::new().await;
    site.sql.batch_execute("create domain trunkline.code as varchar(3)").await.expect("created");
    queue(&site, "codes", "trunkline.code").await;
    let csrf = get(site.address, "/queues/codes").await.csrf();
    let form = [("verb", "enqueue"), ("queue", "codes"), ("payload", "abcd"), ("csrf", &*csrf)];
    let answer = post(site.address, "/act/ask", &form).await;
    assert!(answer.status == 400 && answer.body.contains("too long"), "{}", answer.body);
    // Uses a queue of arrays, whose type is a domain over the array.
    queue(&site, "lists", "int4[]").await;
    let csrf = get(site.address, "/queues/lists").await.csrf();
    let form = [("verb", "enqueue"), ("queue", "lists"), ("payload", "{1,2}"), ("csrf", &*csrf)];
    let answer = post(site.address, "/act/ask", &form).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_be_refused_is_not_asked_and_stays_typed() {
    let site = Site::new().await;
    queue(&site, "j", "jsonb").await;
    let csrf = get(site.address, "/queues/j").await.csrf();
    for (field, value, why) in [
        ("payload", "{bad", "invalid input syntax for type json"),
        ("metadata", "[1]", "metadata must be a JSON object, not [1]"),
        ("metadata", "{", "invalid input syntax for type json"),
        ("priority", "7", "has no priority 7"),
        ("priority", "high", "is not a whole number"),
        ("key", "ada", "has no keys"),
        ("delay", "soon", "is not a time"),
    ] {
        let mut form = vec![("payload", "{\"a\": 1}"), ("delay", "1h"), ("metadata", "{\"tenant\": \"acme\"}")];
        form.retain(|(name, _)| *name != field);
        form.extend([("verb", "enqueue"), ("queue", "j"), ("csrf", &*csrf), (field, value)]);
        let answer = post(site.address, "/act/ask", &form).await;
        assert_eq!(answer.status, 400, "{field} {value}: {}", answer.body);
        assert!(answer.body.contains(why), "{field} {value}: {}", answer.body);
        assert!(!answer.body.contains("statement 1") && !answer.body.contains("-- "), "{}", answer.body);
        for (name, value) in &form {
            let value = value.replace('"', "&#34;");
            let shown = answer.body.contains(&format!("\n{value}</textarea>"))
                || answer.body.contains(&format!("name=\"{name}\" value=\"{value}\""));
            assert!(shown, "{name} is lost: {}", answer.body);
        }
        assert!(answer.body.contains("<a href=\"/queues/j\">Go back</a>"), "{}", answer.body);
    }
    // A form also keeps its text if the action itself is refused, or if the visitor changes the
    // form before the confirmation.
    let form = [("verb", "enqueue"), ("queue", "j"), ("payload", "{worse"), ("csrf", &*csrf)];
    let token = [("token", "00112233445566778899aabbccddeeff")];
    let answer = post(site.address, "/act", &[&form[..], &token].concat()).await;
    assert!(answer.status == 400 && answer.body.contains("\n{worse</textarea>"), "{}", answer.body);
    let answer = post(site.address, "/act/change", &form).await;
    assert!(answer.status == 200 && answer.body.contains("\n{worse</textarea>"), "{}", answer.body);
    assert_eq!(entries(&site).await, 0);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn form_has_a_priority_or_a_key_if_the_queue_has() {
    let site = Site::new().await;
    for (name, settings, has) in [
        ("plain", Settings::new("text"), [false, false]),
        ("ranked", Settings::new("text").priorities(3), [true, false]),
        ("keyed", Settings::new("text").partitions(2), [false, true]),
    ] {
        site.db.create_queue(name, &settings).await.expect("created");
        let page = get(site.address, &format!("/queues/{name}")).await;
        let fields = |body: &str| ["priority", "key"].map(|field| body.contains(&format!("<input name=\"{field}\"")));
        assert_eq!(fields(&page.body), has, "{name}: {}", page.body);
        let csrf = page.csrf();
        let form = [("verb", "enqueue"), ("queue", name), ("payload", "text"), ("csrf", &*csrf)];
        let again = post(site.address, "/act/change", &form).await;
        assert_eq!((again.status, fields(&again.body)), (200, has), "{name}: {}", again.body);
    }
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn purge_asks_for_the_name_of_the_queue() {
    let site = Site::new().await;
    queue(&site, "orders", "text").await;
    let orders: Queue<String> = site.db.queue("orders").await.expect("opened");
    orders.enqueue(&"stays".to_owned()).await.expect("enqueued");
    let csrf = get(site.address, "/queues/orders").await.csrf();
    let form =
        [("verb", "purge"), ("queue", "orders"), ("csrf", &*csrf), ("token", "00112233445566778899aabbccddeeff")];
    for confirm in ["", "order", "Orders"] {
        let answer = post(site.address, "/act", &[&form[..], &[("confirm", confirm)]].concat()).await;
        assert!(answer.status == 400 && answer.body.contains("Type the name of the queue"), "{}", answer.body);
    }
    assert_eq!(site.number("select due from trunkline.stats('orders')").await, 1);
    let answer = post(site.address, "/act", &[&form[..], &[("confirm", " orders")]].concat()).await;
    assert_eq!((answer.status, site.number("select due from trunkline.stats('orders')").await), (303, 0));
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entry_of_a_schedule_has_the_queue_of_the_schedule() {
    let site = Site::new().await;
    queue(&site, "shop", "text").await;
    queue(&site, "other", "text").await;
    site.sql.execute("select trunkline.set_schedule('nightly', 'shop', '0 3 * * *', 'go')", &[]).await.expect("set");
    for (verb, queue) in [("pause-schedule", "other"), ("resume-schedule", ""), ("fire-schedule", "not-there")] {
        let csrf = get(site.address, "/queues/shop").await.csrf();
        let token = format!("{:032x}", queue.len() + 1);
        let form = [("verb", verb), ("schedule", "nightly"), ("queue", queue), ("csrf", &*csrf), ("token", &*token)];
        assert_eq!(post(site.address, "/act", &form).await.status, 303, "{verb}");
    }
    let told = "select count(*) from trunkline.audit where queue = 'shop' and what like '%nightly%'";
    assert_eq!((site.number(told).await, entries(&site).await), (3, 3));
    let (asked, _) = sent(&site, &[("verb", "fire-schedule"), ("queue", "shop"), ("schedule", "none")]).await;
    assert!(asked.status == 404 && asked.body.contains("There is no schedule"), "{}", asked.body);
    site.end().await;
}
