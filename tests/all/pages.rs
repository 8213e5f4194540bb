//! Pages are read without dequeuing. A message that does not decode as `T` does not hide other
//! messages, and can be discarded.

use trunkline::{Draft, Json, Queue, Readable, Settings};

use crate::fixture::{Place, place};

type Shown = Vec<(i64, Option<u64>)>;

fn shown(payloads: impl IntoIterator<Item = (i64, Readable<Json<u64>>)>) -> Shown {
    payloads.into_iter().map(|(id, payload)| (id, payload.ok().map(|Json(number)| number))).collect()
}

/// Reads dead letters page by page, as an operator would.
async fn dead(queue: &Queue<Readable<Json<u64>>>) -> Shown {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let page = queue.dead_letters(after, 2).await.expect("one that is unreadable hides no page");
        let Some(last) = page.last() else { return all };
        after = last.id;
        all.extend(shown(page.into_iter().map(|letter| (letter.id, letter.payload))));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_read_around_what_is_no_t() {
    let Place { queue, sql, db, .. } = place::<Json<u64>>(Settings::new("jsonb")).await;
    let enqueue = "select trunkline.enqueue_many('q', array['1', '\"x\"', '3']::jsonb[])";
    let ids: Vec<i64> = sql.query(enqueue, &[]).await.expect("enqueued").iter().map(|row| row.get(0)).collect();
    let all: Queue<Readable<Json<u64>>> = db.queue("q").await.expect("opened");
    let numbers = [Some(1), None, Some(3)];
    let expected: Shown = ids.iter().copied().zip(numbers).collect();
    let told = |error: trunkline::Error| {
        let text = error.to_string();
        assert!(text.contains(&format!("message {} of queue \"q\" cannot be read", ids[1])), "{text}");
        assert!(
            text.contains("`Readable`") && text.contains(&format!("trunkline dead discard q {}", ids[1])),
            "{text}"
        );
    };

    told(queue.peek(9).await.expect_err("one is a text"));
    let peeked = all.peek(9).await.expect("peeked");
    match &peeked[1].payload {
        Readable::No { raw: Some(raw), why } => {
            assert!(raw.ends_with(b"\"x\"") && why.contains("invalid type"), "{why}");
        }
        payload => panic!("{payload:?}"),
    }
    assert_eq!(shown(peeked.into_iter().map(|message| (message.id, message.payload))), expected);

    let leased = all.lease(9).await.expect("leased, whatever it is");
    all.archive(&leased).await.expect("held");
    told(queue.archived(0, 9).await.expect_err("one is a text"));
    let archived = all.archived(0, 9).await.expect("read");
    assert_eq!(shown(archived.into_iter().map(|message| (message.id, message.payload))), expected);

    let dead_now = "insert into trunkline.dead_q (id, enqueued_at, attempt, error, payload, metadata)
                    select id, enqueued_at, attempt, 'died', payload, metadata from trunkline.archive_q;
                    insert into trunkline.dead_q (id, enqueued_at, attempt, error) values (7, now(), 1, 'malformed')";
    sql.batch_execute(dead_now).await.expect("moved");
    let error = queue.dead_letters(0, 9).await.expect_err("the first is null").to_string();
    assert!(error.contains("message 7 of queue \"q\"") && error.contains("it is null"), "{error}");
    told(queue.dead_letters(7, 9).await.expect_err("one is a text"));
    assert_eq!(dead(&all).await, [&[(7, None)][..], &expected].concat());
    assert_eq!(all.discard(&[7, ids[1]]).await.expect("discarded"), 2);
    assert_eq!(queue.dead_letters(0, 9).await.expect("all are numbers").len(), 2);
    let unreadable = Readable::No { raw: None, why: "it is null".to_owned() };
    assert!(all.enqueue(unreadable).await.expect_err("there is nothing to write").is_bad_payload());
    all.enqueue(Readable::Yes(Json(5))).await.expect("enqueued");
}

/// An invalid row is shown as unreadable, for any type of the queue, and does not hide the valid
/// row behind it.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_no_batch_is_shown() {
    let Place { queue, sql, db, .. } = place::<i64>(Settings::new("int8")).await;
    let two_dimensions = "insert into trunkline.queue_q (size, payload, error) values (1, '{{7,8}}', 'put back')";
    sql.batch_execute(two_dimensions).await.expect("inserted");
    queue.enqueue(1).await.expect("enqueued");
    let error = queue.peek(9).await.expect_err("the first is no batch").to_string();
    assert!(error.contains("one dimension") && error.contains("`Readable`"), "{error}");
    let all: Queue<Readable<i64>> = db.queue("q").await.expect("opened");
    let peeked = all.peek(9).await.expect("peeked");
    let payloads: Vec<_> = peeked.iter().map(|message| message.payload.clone().ok()).collect();
    assert_eq!(payloads, [None, Some(1)]);
    assert!(matches!(peeked[0].payload, Readable::No { raw: None, .. }), "{peeked:?}");
}

/// Recreates a queue under the same name. The handle must not use the plans of the dropped tables,
/// although the server plans a prepared statement again only if an object that the plan names has
/// changed.
#[tokio::test(flavor = "multi_thread")]
async fn old_handle_reads_pages_of_a_queue_created_again() {
    for settings in [Settings::new("int8"), Settings::new("int8").priorities(2), Settings::new("int8").partitions(2)] {
        let Place { queue, db, .. } = place::<i64>(settings.clone()).await;
        let pages = async || {
            let peeked = queue.peek(9).await?.len();
            Ok::<_, trunkline::Error>((
                peeked,
                queue.dead_letters(0, 9).await?.len(),
                queue.archived(0, 9).await?.len(),
            ))
        };
        assert_eq!(pages().await.expect("read"), (0, 0, 0));
        db.drop_queue("q").await.expect("dropped");
        let error = pages().await.expect_err("there is no queue");
        assert!(error.is_no_queue(), "{error}");
        db.create_queue("q", &settings).await.expect("created");
        let draft = Draft::new(1);
        let has_keys = queue.description().partitions > 0;
        queue.enqueue(if has_keys { draft.key("a") } else { draft }).await.expect("enqueued");
        assert_eq!(pages().await.expect("read again"), (1, 0, 0));
    }
}
