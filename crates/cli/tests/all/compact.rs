//! `trunkline compact` frees disk space, or reports what prevents that.

use crate::fixture::{Session, Trunkline, eventually, sql};

const WASTE: &str = "insert into trunkline.queue_q (size, payload) select 1, '{x}' from generate_series(1, 2000); \
                     delete from trunkline.queue_q where payload = '{x}'";

#[test]
fn compact_prints_the_freed_bytes_or_what_holds_it_up() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    trunkline.ok(&["enqueue", "q", "one", "two"]);
    let _old = Session::begin(&trunkline.url, "begin isolation level repeatable read; select 1 from trunkline.queue");
    sql(&trunkline.url, WASTE);
    assert_eq!(trunkline.lines(&["compact", "q"]), ["0"], "less than 32 MB are not worth it");
    let if_held = trunkline.lines(&["compact", "q", "--at-least", "1000", "--if-held"]);
    assert_eq!(if_held, ["0"], "the snapshot is not old");
    let freed: u64 = trunkline.lines(&["compact", "q", "--at-least", "1000"])[0].parse().expect("a number");
    assert!(freed > 100_000, "{freed}");
    assert_eq!(trunkline.lines(&["dequeue", "q"]), ["one", "two"]);

    let _reader = Session::begin(&trunkline.url, "begin; select 1 from trunkline.queue_q");
    eventually("it says who holds it up", || {
        sql(&trunkline.url, WASTE);
        let output = trunkline.start(&["compact", "q", "--at-least", "0"]).wait_with_output().expect("it ends");
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.starts_with("warning: queue \"q\" was not compacted: "), "{error}");
        error.contains("uses it in a transaction that began at")
    });
    let (code, error) = trunkline.fails(&["compact", "q", "--max-pause", "soon"]);
    assert!(code == 2 && error.contains("--max-pause"), "{error}");
    let (code, error) = trunkline.fails(&["compact", "q", "--max-pause", "0"]);
    assert!(code == 2 && error.contains("--max-pause") && error.contains("it must be more than zero"), "{error}");
    let (code, error) = trunkline.fails(&["compact", "nothing"]);
    assert!(code == 1 && error.contains("there is no queue \"nothing\""), "{error}");
}

#[test]
fn compact_names_the_session_that_has_locked_the_queue() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    sql(&trunkline.url, "select trunkline.keep_floor('q', now() - interval '1 minute')");
    let _holder = Session::begin(&trunkline.url, "begin; lock table trunkline.queue_q in access exclusive mode");
    let output = trunkline.run(&["compact", "q", "--at-least", "0"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.contains("was not compacted: session "), "{error}");
    assert!(error.contains("has locked its table"), "{error}");
}
