//! The search for messages.

use trunkline::{Db, Settings};

use super::{Site, connect};
use crate::browser::get;

/// The server may write no temporary file, as it does for results of more than a few megabytes.
#[tokio::test(flavor = "multi_thread")]
async fn search_converts_only_the_payloads_of_its_page() {
    let url = crate::migrated_database().await;
    let limit = "do $$ begin execute format('alter database %I set temp_file_limit = 0', current_database()); end $$";
    connect(&url).await.batch_execute(limit).await.expect("limited");
    let db = Db::connect(&url).await.expect("connected");
    let sql = connect(&url).await;
    let site = Site::of(url, db, sql, |console| console).await;
    for (name, settings) in [("plain", Settings::new("text")), ("keyed", Settings::new("text").partitions(2))] {
        site.db.create_queue(name, &settings).await.expect("created");
        let (column, key) = if name == "keyed" { (", lane, keys", ", -1, array['k' || i % 7]") } else { ("", "") };
        let fill = format!(
            "insert into trunkline.queue_{name} (size, payload, metadata{column})
             select 1, array[i || repeat('x', 20000)], array[jsonb_build_object('nr', 'of ' || i)]{key} from generate_series(1, 3000) i"
        );
        site.sql.batch_execute(&fill).await.expect("filled");
        let page = get(site.address, &format!("/queues/{name}/messages?metadata=of+2999")).await;
        assert_eq!(page.status, 200, "{name}: {}", page.body);
        assert_eq!(page.body.matches("2999xxx").count(), 1, "{name}: {}", page.body);
        assert!(page.body.contains("19.5 KiB"), "{name}: {}", page.body);
    }
    site.end().await;
}
