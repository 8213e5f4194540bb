//! Payloads that pass between sessions as text have the same meaning in every session.

use crate::fixture::{connect, database};

#[tokio::test(flavor = "multi_thread")]
async fn value_written_by_a_session_reads_the_same_in_others() {
    let url = database().await;
    let (there, here) = (connect(&url).await, connect(&url).await);
    here.batch_execute("create type public.odd as (day date, span interval, price money, number float8)")
        .await
        .expect("created");
    let values = [
        "array['2026-04-03'::date, 'infinity', '0044-03-15 BC']",
        "array['2026-04-03 05:06:07.123456'::timestamp]",
        "array['2026-04-03 05:06:07.123456+02'::timestamptz, '1900-01-01 00:00:00+00']",
        "array['-1 day +02:00'::interval, '1 year -2 mons +3 days -04:05:06', '-1 years -2 mons -3 days']",
        "array[1.7976931348623157e308::float8, 0.1, -0.0, 'nan']",
        "array[3.4028235e38::float4, 0.1]",
        "array['\\x00ff27'::bytea, 'ab']",
        "array[1234.5::money]",
        "array['pg_catalog.pg_class'::regclass]",
        "array['05:06:07+05:30'::timetz]",
        "array[row('2026-04-03', '-1 day +02:00', 1234.5, 1.8e307)::odd, null]",
        "array['{\"a\": \"\\u00e9\"}'::jsonb]",
        "array['2026-04-03'::date, '2026-12-31']",
        "array['[2026-04-03, 2026-05-04)'::daterange]",
    ];
    let settings = |date: &str, span: &str, zone: &str, rest: &str| {
        format!("set datestyle = '{date}'; set intervalstyle = '{span}'; set timezone = '{zone}'; {rest}")
    };
    let sessions = [
        settings("ISO, MDY", "postgres", "UTC", "set extra_float_digits = 1; set bytea_output = 'hex'"),
        settings(
            "SQL, DMY",
            "sql_standard",
            "America/New_York",
            "set extra_float_digits = 0; set bytea_output = 'escape'",
        ),
        settings("German", "iso_8601", "Asia/Kolkata", "set extra_float_digits = -15; set bytea_output = 'escape'"),
        settings(
            "Postgres, MDY",
            "postgres_verbose",
            "Europe/Berlin",
            "set extra_float_digits = 3; set search_path = pg_catalog",
        ),
    ];
    for value in values {
        let value = value.replace("odd", "public.odd");
        for from in &sessions {
            there.batch_execute(from).await.expect("set");
            let text: String =
                there.query_one(&format!("select trunkline.written({value})"), &[]).await.expect("written").get(0);
            for to in &sessions {
                here.batch_execute(to).await.expect("set");
                // The two arrays are compared as texts of this session, which parses them with its
                // own settings.
                let same = format!(
                    "select trunkline.written(trunkline.read_as($1, null::{})) = trunkline.written({value})",
                    of(&value)
                );
                let row = here
                    .query_one(&same, &[&text])
                    .await
                    .unwrap_or_else(|error| panic!("{value} from {from} to {to}: {error:?}"));
                assert!(row.get::<_, bool>(0), "{value} from {from} to {to}: {text}");
            }
        }
    }
}

/// Returns the type of an array's text, taken from the first cast in it.
fn of(value: &str) -> String {
    let name = value.split("::").nth(1).expect("a cast");
    let end = name.find([',', ']']).expect("an end");
    format!("{}[]", &name[..end])
}
