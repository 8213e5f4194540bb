//! Dead letters that are too many to group or to count, or locked.

use std::time::Duration;

use tokio::time::timeout;

use super::{Site, connect, deeds::dead};
use crate::browser::{get, post};

const SOON: Duration = Duration::from_secs(60);

/// The letter after the first page is so slow to group that the server stops the statement.
#[tokio::test(flavor = "multi_thread")]
async fn letters_that_cannot_be_grouped_are_listed_and_can_be_discarded() {
    let site = Site::new().await;
    dead(&site, "q", &["e"; 51]).await;
    site.sql
        .batch_execute(
            "create function public.slow(error text) returns text stable cost 100000 language plpgsql as
                 $$ begin perform pg_sleep(600); return error; end $$;
             alter table trunkline.dead_q rename to all_dead;
             create view trunkline.dead_q as select id, dead_at, attempt, payload, metadata, own,
                 case when id < (select max(l.id) from trunkline.all_dead l) then error else public.slow(error) end as error
             from trunkline.all_dead",
        )
        .await
        .expect("changed");
    let page = timeout(SOON, get(site.address, "/queues/q/dead")).await.expect("in time");
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(page.body.contains("id=\"late\"") && !page.body.contains("aria-label=\"Errors\""), "{}", page.body);
    assert_eq!(page.body.matches("<a href=\"/queues/q/messages/").count(), 50, "{}", page.body);
    assert!(page.body.contains("Discard all …") && page.body.contains("Find</button>"), "{}", page.body);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn action_on_a_locked_queue_is_asked_for_without_a_count() {
    let site = Site::new().await;
    dead(&site, "q", &["e", "e"]).await;
    let csrf = get(site.address, "/queues/q").await.csrf();
    let holder = connect(&site.url).await;
    let lock = "begin; lock table trunkline.dead_q, trunkline.queue_q in access exclusive mode";
    holder.batch_execute(lock).await.expect("locked");
    for verb in ["discard", "replay", "purge"] {
        let form = [("verb", verb), ("queue", "q"), ("csrf", csrf.as_str())];
        let asked = timeout(Duration::from_secs(15), post(site.address, "/act/ask", &form)).await.expect("in time");
        assert_eq!(asked.status, 200, "{verb}: {}", asked.body);
        assert!(asked.text_after(r#"<b id="count">"#).starts_with("not known"), "{verb}: {}", asked.body);
        // Letters that die after the question are not affected, although nothing was counted.
        assert!(verb == "purge" || !asked.hidden("counted").is_empty(), "{}", asked.body);
    }
    holder.batch_execute("rollback").await.expect("let go");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_that_cannot_be_listed_can_be_discarded() {
    let site = Site::new().await;
    dead(&site, "q", &["e", "e"]).await;
    let holder = connect(&site.url).await;
    holder.batch_execute("begin; lock table trunkline.dead_q in access exclusive mode").await.expect("locked");
    for query in ["", "?text=e", "?after=1"] {
        let page = timeout(SOON, get(site.address, &format!("/queues/q/dead{query}"))).await.expect("in time");
        assert_eq!(page.status, 200, "{query}: {}", page.body);
        assert!(page.body.contains("id=\"late\"") && page.body.contains("id=\"unlisted\""), "{}", page.body);
        assert!(page.body.contains("Discard ") && page.body.contains("Replay "), "{}", page.body);
        assert!(
            !page.body.contains("There are no dead letters") && !page.body.contains("No dead letter"),
            "{}",
            page.body
        );
    }
    holder.batch_execute("rollback").await.expect("let go");
    let page = get(site.address, "/queues/q/dead").await;
    assert!(!page.body.contains("id=\"unlisted\"") && page.body.contains("Discard all …"), "{}", page.body);
    site.end().await;
}
