//! The message of a schedule does not depend on the settings of sessions: neither of the session
//! that declares the schedule, nor of the sessions that make its ticks.

use trunkline::{Db, Schedule, Settings};

use super::{Ticks, YEARLY, not_since, one};
use crate::fixture::{Place, connect, eventually, place};

/// The settings of two sessions that print and parse values differently.
const SETTINGS: [&str; 2] = [
    "set datestyle = 'SQL, DMY'; set intervalstyle = sql_standard; set timezone = 'Asia/Kolkata'; set extra_float_digits = 0; set bytea_output = escape",
    "set datestyle = 'German, MDY'; set intervalstyle = iso_8601; set timezone = 'America/New_York'; set extra_float_digits = -15; set bytea_output = hex",
];

/// Types, each with a text that has the intended meaning in only one of the sessions.
const PAYLOADS: [(&str, &str); 11] = [
    ("date", "03/04/2026"),
    ("timestamp", "03/04/2026 05:06:07.89"),
    ("timestamptz", "03/04/2026 05:06:07"),
    ("interval", "-1 2:00:00"),
    ("interval", "1-2 -3 4:05:06"),
    ("float8", "1.7976931348623157e308"),
    ("float4", "0.1"),
    ("bytea", r"\x615c6201"),
    ("date[]", "{03/04/2026,05/06/2026}"),
    ("daterange", "[03/04/2026,05/06/2026)"),
    ("public.part", "(03/04/2026,\"03/04/2026 05:06:07\",0.3)"),
];

#[tokio::test(flavor = "multi_thread")]
async fn scheduled_message_is_as_declared_whatever_the_session_settings() {
    let Place { db, sql, url, .. } = place::<i64>(Settings::new("int8")).await;
    sql.batch_execute("create type public.part as (day date, at timestamptz, share float8)").await.expect("made");
    for (nr, (kind, text)) in PAYLOADS.into_iter().enumerate() {
        for (declares, makes) in [(0, 1), (1, 0)] {
            let name = format!("s.{nr}.{declares}");
            let (declaring, making) = (connect(&url).await, connect(&url).await);
            declaring.batch_execute(SETTINGS[declares]).await.expect("set");
            making.batch_execute(SETTINGS[makes]).await.expect("set");
            db.create_queue(&name, &Settings::new(kind)).await.expect("created");
            let quoted = format!("'{text}'");
            let meant = format!("select {quoted}::{kind}");
            if declaring.batch_execute(&meant).await.is_err() {
                continue; // skip texts that the declaring session cannot parse
            }
            let set = format!("select trunkline.set_schedule('{name}', '{name}', '{YEARLY}', {quoted})");
            assert!(declaring.query_one(&set, &[]).await.expect(&set).get::<_, bool>(0));
            assert!(!declaring.query_one(&set, &[]).await.expect(&set).get::<_, bool>(0), "{set}: the same");
            making.batch_execute(&format!("select trunkline.fire_schedule('{name}')")).await.expect("fired");
            let same = format!("select payload = array[{quoted}::{kind}] from trunkline.\"queue_{name}\"");
            // Compares an element if the payload type is an array. The column is then an array of a
            // domain over that type, because Postgres has no arrays of arrays.
            let same = if kind.ends_with("[]") {
                format!("select payload[1] = {quoted}::{kind} from trunkline.\"queue_{name}\"")
            } else {
                same
            };
            assert!(declaring.query_one(&same, &[]).await.expect(&same).get::<_, bool>(0), "{name}: {kind} {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn library_declares_and_ticks_alike_under_any_settings() {
    let Place { sql, url, .. } = place::<i64>(Settings::new("int8")).await;
    let options = |options: &str| format!("{} options='{options}'", url.replace("options=''", ""));
    let declaring = Db::connect(&options("-c datestyle=SQL,DMY -c extra_float_digits=0")).await.expect("connected");
    let making = Db::connect(&options("-c datestyle=German,MDY -c extra_float_digits=-15")).await.expect("connected");
    declaring.create_queue("f", &Settings::new("float8")).await.expect("created");
    declaring.create_queue("t", &Settings::new("timestamptz")).await.expect("created");
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_micros(1_775_192_767_000_001); // 3 April 2026
    let floats = declaring.queue::<f64>("f").await.expect("opened");
    let times = declaring.queue::<std::time::SystemTime>("t").await.expect("opened");
    floats.schedule(&Schedule::new("f", YEARLY), &0.1_f64.next_up()).await.expect("set");
    times.schedule(&Schedule::new("t", YEARLY), &time).await.expect("set");
    not_since(&sql, "f", "now()").await;
    not_since(&sql, "t", "now()").await;
    let runs = Ticks::start(&making);
    eventually("both tick", async || one(&making, "f").await.last.is_some() && one(&making, "t").await.last.is_some())
        .await;
    runs.stop().await;
    assert_eq!(floats.take(1).await.expect("taken")[0].payload.to_bits(), 0.1_f64.next_up().to_bits());
    assert_eq!(times.take(1).await.expect("taken")[0].payload, time);
}

#[tokio::test(flavor = "multi_thread")]
async fn schedule_is_set_where_strings_have_escapes() {
    let Place { sql, .. } = place::<i64>(Settings::new("int8")).await;
    sql.batch_execute("set standard_conforming_strings = off").await.expect("set");
    for expression in ["every 90 seconds", "0 3 * * mon-fri", "@daily"] {
        let set = format!("select trunkline.set_schedule('s', 'q', '{expression}', '1')");
        assert!(sql.query_one(&set, &[]).await.expect(expression).get::<_, bool>(0));
    }
}

/// A function whose body contains a backslash must set `standard_conforming_strings`, because
/// sessions may change its meaning.
#[test]
fn functions_with_backslashes_say_how_strings_are_read() {
    let mut seen = 0;
    for file in crate::house::files("sql/functions", "sql") {
        let text = std::fs::read_to_string(&file).expect("a text");
        let code: String = text.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
        if code.contains('\\') {
            seen += 1;
            assert!(code.contains("set standard_conforming_strings = on"), "{}", file.display());
        }
    }
    assert!(seen >= 2, "{seen}");
}
