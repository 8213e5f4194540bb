//! A program that serves three kinds of metrics on one page for Prometheus: its own, the library's
//! in this program, and its database's.

use std::{env, error::Error};

use metrics_exporter_prometheus::PrometheusBuilder;
use trunkline::{Db, Failure, Message, Settings, Worker};
use trunkline_console::metrics::{CONTENT_TYPE, Metrics};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let page = page(&env::var("DATABASE_URL")?).await?;
    println!("content-type: {CONTENT_TYPE}\n\n{page}");
    Ok(())
}

/// Returns the page: the metrics of this program, then those of the database.
pub async fn page(url: &str) -> Result<String, Box<dyn Error>> {
    let of_program = PrometheusBuilder::new().install_recorder()?; // queues look up their metrics when they are opened
    let of_database = Metrics::new(); // all scrapes share this value, because it keeps the samples
    let db = Db::connect(url).await?;
    db.migrate().await?;
    db.create_queue("orders", &Settings::of::<i64>()).await?;
    let orders = db.queue::<i64>("orders").await?;
    orders.enqueue_many(1..=3).await?;
    let handler = |order: Message<i64>| async move {
        metrics::counter!("shop_orders_total").increment(1);
        if order.payload == 3 { Err(Failure::dead("sold out")) } else { Ok(()) }
    };
    Worker::new(orders, handler).drain().await?;

    // Responds to a scrape. No metric occurs in both texts, so the texts can simply be joined.
    let page = format!("{}{}", of_program.render(), of_database.exposition(&db).await);
    assert!(page.contains("shop_orders_total 3\n"));
    assert!(page.contains("trunkline_settled_messages_total{queue=\"orders\",outcome=\"done\"} 2\n"));
    assert!(page.contains("trunkline_queue_messages{queue=\"orders\",state=\"dead\"} 1\n"));
    Ok(page)
}
