//! Tests lists in SQL as drivers pass them: typed, untyped, and empty.

use tokio_postgres::Client;

use crate::fixture::{connect, database};

async fn queue() -> Client {
    let sql = connect(&database().await).await;
    sql.batch_execute("select trunkline.create_queue('q', 'jsonb')").await.expect("created");
    sql
}

const ENDS: [(&str, &str); 7] = [
    ("ack", ""),
    ("archive", ""),
    ("release", ""),
    ("retry", ""),
    ("bury", ""),
    ("charge", ""),
    ("extend", ", '1 minute'"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_end_is_for_one_and_for_many() {
    let sql = queue().await;
    for (verb, more) in ENDS {
        let fill = "select trunkline.purge('q'); select trunkline.enqueue_many('q', array['1', '2', '3', '4', '5'])";
        sql.batch_execute(fill).await.expect("enqueued");
        // Leases nothing for `charge`, which is for messages without a lease, as after the rollback
        // of a take.
        let dequeue = match verb {
            "charge" => "select id, attempt from trunkline.messages('q')",
            _ => "select id, attempt from trunkline.lease('q', 5)",
        };
        let leased = sql.query(dequeue, &[]).await.expect("leased");
        let (ids, attempts): (Vec<i64>, Vec<i32>) =
            leased.iter().map(|row| (row.get::<_, i64>(0), row.get::<_, i32>(1))).unzip();
        let one = format!("select trunkline.{verb}('q', $1, $2{more})");
        sql.execute(&one, &[&ids[0], &attempts[0]]).await.unwrap_or_else(|error| panic!("{one}: {error:?}"));
        let many = format!("select trunkline.{verb}_many('q', $1, $2{more})");
        sql.execute(&many, &[&&ids[1..3], &&attempts[1..3]]).await.unwrap_or_else(|error| panic!("{many}: {error:?}"));
        let (third, fourth, attempt) = (ids[3], ids[4], attempts[3]);
        for lists in [
            format!("'{{{third},{fourth}}}', '{{{attempt},{attempt}}}'"),
            "'{}', '{}'".to_owned(),
            "array[]::int8[], array[]::int4[]".to_owned(),
            "array[]::int2[], array[]::int2[]".to_owned(),
        ] {
            let call = format!("select trunkline.{verb}_many('q', {lists}{more})");
            sql.batch_execute(&call).await.unwrap_or_else(|error| panic!("{call}: {error:?}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_are_passed_as_a_list_of_any_length() {
    let sql = queue().await;
    for (verb, more) in [("cancel", ""), ("reschedule", ", now()"), ("replay", ""), ("discard", "")] {
        for (list, count) in [
            ("array[IDS]::int8[]", 2),
            ("array[IDS]::int4[]", 2),
            ("'{IDS}'", 2),
            ("array[ID]", 1),
            ("'{ID}'", 1),
            ("'{}'", 0),
            ("array[]::int8[]", 0),
        ] {
            let fill = "select trunkline.purge('q'), trunkline.discard_all('q'); select trunkline.enqueue_many('q', '{1,2,3}'::text[])";
            sql.batch_execute(fill).await.expect("enqueued");
            if matches!(verb, "replay" | "discard") {
                let bury =
                    "select trunkline.bury_many('q', array_agg(id), array_agg(attempt)) from trunkline.lease('q', 3)";
                sql.batch_execute(bury).await.expect("buried");
            }
            let all = "select id from trunkline.messages('q') union all select id from trunkline.dead_letters('q') order by id";
            let ids: Vec<i64> = sql.query(all, &[]).await.expect("read").iter().map(|row| row.get(0)).collect();
            let list = list.replace("IDS", &format!("{},{}", ids[0], ids[2])).replace("ID", &ids[1].to_string());
            let call = format!("select trunkline.{verb}('q', {list}{more})");
            let rows = sql.query(&call, &[]).await.unwrap_or_else(|error| panic!("{call}: {error:?}"));
            let done = match verb {
                "cancel" | "reschedule" => rows.len() as i64,
                _ => rows[0].get(0),
            };
            assert_eq!(done, count, "{call}");
        }
        // Prepares the statement, as some drivers do to learn the types of the parameters from the
        // server.
        let prepared = sql.prepare(&format!("select trunkline.{verb}('q', $1{more})")).await.expect("prepared");
        sql.query(&prepared, &[&Vec::<i64>::new()]).await.expect("of bigint[]");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn payloads_are_passed_as_text_or_typed_in_any_number() {
    let sql = queue().await;
    for (call, count) in [
        ("enqueue('q', '{}')", 1),
        ("enqueue('q', '{}'::jsonb)", 1),
        ("enqueue('q', '{}'::text)", 1),
        ("enqueue_many('q', array['{}', '[1]'])", 2),
        ("enqueue_many('q', array['{}', '[1]']::jsonb[])", 2),
        (r#"enqueue_many('q', '{"{}","[1]"}')"#, 2),
        ("enqueue_many('q', '{}')", 0),
        ("enqueue_many('q', '{}'::text[])", 0),
        ("enqueue_many('q', array[]::jsonb[])", 0),
        ("enqueue_many('q', array['{}', '[1]']::varchar[])", 2),
        ("enqueue_many('q', '{}'::varchar(9)[])", 0),
        ("enqueue_many('q', (select array_agg(v) from (values ('{}'::varchar), ('1')) t(v)))", 2),
        ("enqueue_many(queue => 'q', payloads => array['{}']::varchar[], delay => '0')", 1),
    ] {
        let rows = sql.query(&format!("select * from trunkline.{call}"), &[]).await;
        assert_eq!(rows.unwrap_or_else(|error| panic!("{call}: {error:?}")).len(), count, "{call}");
        let taken = sql.query("select * from trunkline.take('q', 9)", &[]).await.expect("taken");
        assert_eq!(taken.len(), count, "{call}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn payloads_with_unique_keys_are_passed_as_any_texts() {
    let sql = connect(&database().await).await;
    sql.batch_execute("select trunkline.create_queue('q', 'jsonb', uniqueness => true)").await.expect("created");
    for list in
        ["'{\"{}\",\"[1]\"}'", "array['{}', '[1]']", "array['{}', '[1]']::varchar[]", "array['{}', '[1]']::jsonb[]"]
    {
        for call in
            ["enqueue_unique_many('q', LIST, array['a', 'b'])", "enqueue_many('q', LIST, unique_keys => '{c,d}')"]
        {
            let call = format!("select * from trunkline.{}", call.replace("LIST", list));
            let rows = sql.query(&call, &[]).await.unwrap_or_else(|error| panic!("{call}: {error:?}"));
            assert_eq!(rows.len(), 2, "{call}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_that_are_null_or_of_two_dimensions_are_refused() {
    let sql = queue().await;
    sql.batch_execute(
        "select trunkline.create_queue('u', 'jsonb', uniqueness => true), trunkline.enqueue_many('q', '{1,2,3,4}')",
    )
    .await
    .expect("created");
    for (verb, more) in ENDS {
        let lists =
            ["array[[1024,1025]], array[[1,1]]", "array[[1024],[1025]], array[1,1]", "array[1024,1025], array[[1,1]]"];
        for lists in lists {
            let call = format!("select trunkline.{verb}_many('q', {lists}{more})");
            let error = sql.batch_execute(&call).await.expect_err(&call);
            let error = error.as_db_error().expect("the server's");
            assert_eq!((error.code().code(), error.hint().is_some()), ("2202E", true), "{call}: {error:?}");
        }
        // Passes nulls, which `array_agg` returns if nothing was leased.
        sql.batch_execute(&format!("select trunkline.{verb}_many('q', null, null{more})")).await.expect(verb);
        let one = format!("select trunkline.{verb}_many('q', '{{1024}}', null{more})");
        assert!(sql.batch_execute(&one).await.is_err(), "{verb}");
        for (pair, said) in [
            ("null, 1", "an id or an attempt is null"),
            ("1024, null", "an id or an attempt is null"),
            ("'{}', null", "the same length: 0 ids, null attempts"),
            ("null, '{1}'", "the same length: null ids, 1 attempts"),
            ("'{1024,1025}', '{1}'", "the same length: 2 ids, 1 attempts"),
        ] {
            let many = if pair.contains('{') { "_many" } else { "" };
            let call = format!("select trunkline.{verb}{many}('q', {pair}{more})");
            let error = sql.batch_execute(&call).await.expect_err(&call);
            let error = error.as_db_error().expect("the server's");
            assert!(error.code().code() == "22023" && error.message().contains(said), "{call}: {error:?}");
        }
    }
    for call in [
        "enqueue_many('q', null)",
        "enqueue_unique('u', '1', null)",
        "enqueue_unique('u', '1'::jsonb, null)",
        "enqueue_unique_many('u', null, '{k}')",
        "cancel('q', null)",
        "reschedule('q', null, now())",
        "replay('q', null)",
        "discard('q', null)",
        "own_columns('q', null)",
    ] {
        let error = sql.query(&format!("select * from trunkline.{call}"), &[]).await.expect_err(call);
        let error = error.as_db_error().expect("the server's");
        assert_eq!((error.code().code(), error.hint().is_some()), ("22004", true), "{call}: {error:?}");
    }
    assert_eq!(sql.query("select from trunkline.messages('q')", &[]).await.expect("read").len(), 4);
    assert_eq!(sql.query("select from trunkline.messages('u')", &[]).await.expect("read").len(), 0);
}
