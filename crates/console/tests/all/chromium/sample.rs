//! The data of a shop, with content for every page: healthy and troubled queues, dead letters,
//! schedules and, for screenshots, running workers.

use std::time::Duration;

use serde_json::{Value, json};
use trunkline::{Db, Draft, Message, Queue, Settings, Worker};

use crate::web::Site;

const MINUTE: Duration = Duration::from_secs(60);

async fn open(site: &Site, name: &str, settings: Settings) -> Queue<Value> {
    site.db.create_queue(name, &settings).await.expect("created");
    site.db.queue(name).await.expect("opened")
}

fn jsonb() -> Settings {
    Settings::new("jsonb")
}

/// Returns a console on a filled database. When it first answers, it has sampled all queues.
pub async fn shop() -> Site {
    let site = Site::new().await;
    fill(&site).await;
    site.restarted(|console| console.title("shop")).await
}

/// Fills the database. Due messages have been due for a few seconds, except in one queue.
async fn fill(site: &Site) {
    let emails = open(site, "emails", jsonb()).await;
    let mail = |n: usize| {
        let person = ["ada", "grace", "edsger", "barbara", "donald"][n % 5];
        let trace = format!("00-4bf92f3577b34da6a3ce929d0e{n:06x}-00f067aa0ba902b7-01");
        Draft::new(json!({ "to": format!("{person}@example.org"), "template": "welcome", "order": 40_000 + n, "urgent": n.is_multiple_of(7) }))
            .with("tenant", ["acme", "globex", "initech"][n % 3])
            .with("traceparent", trace)
    };
    emails.enqueue_many((0..1_284).map(mail)).await.expect("enqueued");
    emails.enqueue_many((0..212).map(|n| mail(n).after(MINUTE * (1 + n as u32 % 50)))).await.expect("enqueued");
    emails.lease(64).await.expect("leased");

    let webhooks = open(site, "webhooks", jsonb()).await;
    let call = |n: usize| {
        Draft::new(json!({ "url": format!("https://hooks.example.com/{}", n % 9), "event": "order.paid", "id": n }))
            .with("tenant", "acme")
    };
    webhooks.enqueue_many((0..120).map(call)).await.expect("enqueued");
    let leases = webhooks.lease(60).await.expect("leased");
    let timeout = "connect to hooks.example.com:443: timed out after 30 s";
    webhooks.bury(&leases[..23], timeout).await.expect("buried");
    webhooks.bury(&leases[23..30], "410 Gone: this hook was removed").await.expect("buried");
    webhooks.bury(&leases[30..32], "certificate expired 3 days ago").await.expect("buried");
    webhooks.retry(&leases[32..50], MINUTE * 5, "503 Service Unavailable").await.expect("retried");

    let invoices = open(site, "invoices", jsonb().partitions(8)).await;
    let invoice = |n: usize| Draft::new(json!({ "invoice": n, "total": "129.90" })).key(format!("customer-{}", n % 12));
    invoices.enqueue_many((0..48).map(invoice)).await.expect("enqueued");

    let thumbnails: Queue<Vec<u8>> = {
        site.db.create_queue("thumbnails", &Settings::new("bytea")).await.expect("created");
        site.db.queue("thumbnails").await.expect("opened")
    };
    let image = |n: u8| [b"\x89PNG\r\n\x1a\n".as_slice(), &[0, 0xff, n, b'I', b'H', b'D', b'R']].concat();
    thumbnails.enqueue_many((0..9).map(image)).await.expect("enqueued");

    let payments = open(site, "payments", jsonb().priorities(3)).await;
    let pay = |n: usize| Draft::new(json!({ "order": 40_100 + n, "amount": 4_990, "currency": "EUR" }));
    payments.enqueue_many((0..7).map(pay)).await.expect("enqueued");

    open(site, "search-index", jsonb()).await;
    let exports = open(site, "exports", jsonb()).await;
    exports.enqueue_many((0..3).map(|n| Draft::new(json!({ "month": n })))).await.expect("enqueued");
    let run = |statement| async move { site.sql.batch_execute(statement).await.expect(statement) };
    run("select trunkline.pause_queue('exports')").await;
    run("select trunkline.set_schedule('month-end', 'exports', '0 3 1 * *', '{\"all\": true}')").await;
    run("select trunkline.set_schedule('digest', 'emails', '30 7 * * mon-fri', '{\"digest\": true}')").await;
    run("select trunkline.set_schedule('sweep', 'search-index', '*/10 * * * *', '{}')").await;
    run("select trunkline.pause_schedule('sweep')").await;
    run("insert into trunkline.relay (name, queue, broker, inward, confirmed, held, lag, last_error, failed_at, seen_at) values
             ('webhooks to kafka 1f', 'webhooks', 'kafka://kafka.shop/webhooks', false, 48210, 0, 12, null, null, now()),
             ('emails from nats', 'emails', 'nats://nats.shop/MAILS', true, 910, 3, null, 'the connection was refused', now(), now() - interval '5 minutes')")
    .await;
}

/// Connects under the name of one of the shop's programs.
async fn program(site: &Site, name: &str) -> Db {
    let question = "select format('host=%s port=%s dbname=%s user=%s', trim(both '\"' from split_part(current_setting('unix_socket_directories'), ',', 1)),
        current_setting('port'), current_database(), current_user)";
    let url: String = site.sql.query_one(question, &[]).await.expect("asked").get(0);
    Db::connect(&format!("{url} application_name={name}")).await.expect("connected")
}

/// Enqueues messages and runs workers that report, until the tasks are aborted.
pub async fn work(site: &Site) -> Vec<tokio::task::JoinHandle<()>> {
    let mut tasks = Vec::new();
    let api = program(site, "shop-api").await;
    let workers = program(site, "shop-worker").await;
    for (name, every, takes) in [("emails", 9, 120), ("search-index", 4, 20), ("payments", 70, 150)] {
        let queue: Queue<Value> = api.queue(name).await.expect("opened");
        tasks.push(tokio::spawn(async move {
            for n in 0.. {
                let message =
                    Draft::new(json!({ "order": 41_000 + n, "to": "grace@example.org", "template": "receipt" }));
                let _ = queue.enqueue(message).await;
                tokio::time::sleep(Duration::from_millis(every)).await;
            }
        }));
        let queue: Queue<Value> = workers.queue(name).await.expect("opened");
        let handle = move |_: Message<Value>| async move {
            tokio::time::sleep(Duration::from_millis(takes)).await;
            Ok::<_, trunkline::Failure>(())
        };
        let worker = Worker::new(queue, handle).concurrency(12).reports(true);
        tasks.push(tokio::spawn(async move {
            let _ = worker.run(std::future::pending()).await;
        }));
    }
    tasks
}

/// Draws invented lines for the last hour instead of the console's own, so that a screenshot does
/// not require an hour of samples.
pub const HOUR: &str = "let seed = 7; const chance = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
    const line = (width, height, calm) => Array.from({ length: 60 }, (_, at) => {
        const wave = .55 + .25 * Math.sin(at / 9 + calm) + .12 * Math.sin(at / 2.3) + .1 * (chance() - .5);
        return `${(at * width / 59).toFixed(0)},${(height * (1 - wave * .85)).toFixed(1)}`;
    }).join(' ');
    const draw = (place, points) => {
        place.setAttribute('points', points);
        place.setAttribute = () => {};
    };
    document.querySelectorAll('tr[data-queue] polyline').forEach((place, at) => draw(place, line(120, 24, at * 1.7)));
    document.querySelectorAll('.chart').forEach((chart, at) => chart.querySelectorAll('g').forEach((group, of) => {
        while (group.children.length > 1) group.lastChild.remove();
        if (!group.firstChild) group.append(document.createElementNS('http://www.w3.org/2000/svg', 'polyline'));
        group.firstChild.setAttribute('points', line(600, 100, at + of / 3));
    }));";
