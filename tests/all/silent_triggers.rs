//! Tests triggers that silently refuse rows: no message is lost, and every caller gets an error.

use trunkline::Settings;

use crate::fixture::{Place, place};

/// The number of waiting messages and of dead letters.
async fn counts(sql: &tokio_postgres::Client) -> (i64, i64) {
    let count =
        "select (select coalesce(sum(size), 0) from trunkline.queue_q), (select count(*) from trunkline.dead_q)";
    let row = sql.query_one(count, &[]).await.expect("counted");
    (row.get(0), row.get(1))
}

#[tokio::test]
async fn silently_refused_rows_are_errors_and_lose_nothing() {
    let plain = || Settings::new("int8");
    for (settings, unique) in [(plain(), false), (plain().priorities(2), false), (plain().uniqueness(true), true)] {
        let Place { queue, sql, .. } = place::<i64>(settings).await;
        queue.enqueue_many(0..100).await.expect("enqueued");
        let leased = queue.lease(1).await.expect("leased");
        queue.bury(&leased, "never").await.expect("buried");
        let before = counts(&sql).await;
        let trigger = "create function public.pass_over() returns trigger language plpgsql as 'begin return null; end';
                       create trigger pass_over before insert on trunkline.queue_q for each row execute function public.pass_over()";
        sql.batch_execute(trigger).await.expect("created");
        let mut calls = vec![
            "select trunkline.enqueue('q', 1::int8)",
            "select trunkline.enqueue('q', '1')",
            "select trunkline.enqueue('q', 1::int8, delay => '1 hour')",
            "select trunkline.enqueue_many('q', '{1,2}'::int8[])",
            "select trunkline.enqueue_many('q', '{1,2}')",
            "select trunkline.replay_all('q')",
            "select * from trunkline.take('q', 1)", // splits a row
        ];
        if unique {
            calls.push("select trunkline.enqueue_unique('q', 1::int8, 'a key')");
        }
        for call in calls {
            let error = sql.query(call, &[]).await.expect_err(call);
            assert_eq!(error.code().expect("a code").code(), "09000", "{call}: {error:?}");
            assert_eq!(counts(&sql).await, before, "{call}");
        }
        assert!(queue.replay_all().await.expect_err("refused").to_string().contains("silently refused"));
        sql.batch_execute("drop trigger pass_over on trunkline.queue_q").await.expect("dropped");
        assert_eq!(queue.replay_all().await.expect("replayed"), 1);
        assert_eq!(queue.take(200).await.expect("taken").len(), 100);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn setting_that_a_trigger_misses_is_not_a_missing_queue() {
    let Place { queue, sql, db, .. } = place::<i64>(Settings::new("int8")).await;
    sql.batch_execute(
        "create function public.tenant() returns trigger language plpgsql as
             $$ begin perform current_setting('app.tenant'); return new; end $$;
         create trigger tenant before insert on trunkline.queue_q for each row execute function public.tenant()",
    )
    .await
    .expect("created");
    let transaction = db.begin().await.expect("begun");
    for error in [
        queue.enqueue_in(&transaction, 1).await.expect_err("the setting is missing"),
        queue.enqueue(1).await.expect_err("the setting is missing"),
    ] {
        assert!(!error.is_no_queue() && error.to_string().contains("app.tenant"), "{error}");
    }
}
