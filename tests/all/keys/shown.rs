//! Every call that shows a message also shows its key.

use trunkline::{Readable, Settings};

use super::{nth, settings};
use crate::fixture::{Ids, Place, place};

#[tokio::test]
async fn a_message_tells_its_key_wherever_it_is() {
    let Place { db, queue, sql, .. } = place::<i64>(settings().partitions(2)).await;
    let ids =
        queue.enqueue_many(&(0..6).map(|at| nth(at as usize, at)).collect::<Vec<_>>()).await.expect("enqueued").ids();
    let key = |payload: i64| format!("key {payload}");
    let peeked = queue.peek(10).await.expect("looked at");
    assert!(peeked.len() == 6 && peeked.iter().all(|peeked| peeked.key.as_deref() == Some(&key(peeked.payload))));
    for call in ["messages('q')", &format!("messages('q', first_id => {})", ids[0].min(ids[5]))] {
        let told = format!("select count(*) filter (where key = 'key ' || payload) from trunkline.{call}");
        assert!(sql.query_one(&told, &[]).await.expect(call).get::<_, i64>(0) > 0, "{call}");
    }
    // One message dies, one is archived, and the others remain.
    let ended = "select case when payload::int < 2 then trunkline.bury('q', id, attempt, 'no use') else trunkline.archive('q', id, attempt) end
                 from (select * from trunkline.lease_partition('q') union all select * from trunkline.lease_partition('q')) l where payload::int < 4";
    sql.query(ended, &[]).await.expect("ended");
    let dead = queue.dead_letters(0, 10).await.expect("read");
    let archived = queue.archived(0, 10).await.expect("read");
    assert_eq!((dead.len(), archived.len()), (2, 2));
    assert!(dead.iter().all(|letter| letter.key.as_deref() == Some(&key(letter.payload))), "{dead:?}");
    assert!(archived.iter().all(|message| message.key.as_deref() == Some(&key(message.payload))), "{archived:?}");
    let letters =
        sql.query("select key, payload from trunkline.dead_letters('q') order by id", &[]).await.expect("read");
    assert!(
        letters.len() == 2
            && letters.iter().all(|row| row.get::<_, String>(0) == format!("key {}", row.get::<_, String>(1)))
    );
    for (id, payload) in ids.into_iter().zip(0..) {
        let found = queue.find(id).await.expect("looked for").expect("there");
        assert_eq!((found.key.as_deref(), found.payload), (Some(&*key(payload)), payload));
        let found = sql.query_one("select key from trunkline.find('q', $1)", &[&id]).await.expect("there");
        assert_eq!(found.get::<_, String>(0), key(payload));
    }
    db.create_queue("plain", &Settings::new("int8")).await.expect("created");
    let plain = db.queue::<Readable<i64>>("plain").await.expect("opened");
    let id = db.queue::<i64>("plain").await.expect("opened").enqueue(1).await.expect("enqueued").id();
    assert_eq!(plain.find(id).await.expect("looked for").expect("there").key, None);
    assert_eq!(plain.peek(1).await.expect("looked at")[0].key, None);
    let none = "select count(*) from trunkline.messages('plain') where key is null";
    assert_eq!(sql.query_one(none, &[]).await.expect("read").get::<_, i64>(0), 1);
}
