//! Signals that arrive during a change: the change is cancelled, and the program reports that.

use crate::fixture::{Session, Trunkline, eventually, failed, signal, sql};

const OURS: &str = "select count(*) from pg_stat_activity \
                    where application_name = 'trunkline' and datname = current_database()";

#[test]
fn interrupted_change_is_cancelled_and_says_so() {
    let cases: [(&str, &str, &[&str]); 5] = [
        ("INT", "select 1 from trunkline.queue_q for update", &["purge", "q", "--yes"]),
        ("TERM", "select 1 from trunkline.queue_q", &["queue", "drop", "q", "--yes"]),
        ("HUP", "select 1 from trunkline.queue_q", &["teardown", "--yes"]),
        ("INT", "select 1 from trunkline.archive_q for update", &["prune", "q", "--older-than", "0", "--yes"]),
        ("INT", "lock table trunkline.queue_q in exclusive mode", &["enqueue", "q", "another"]),
    ];
    for (name, lock, args) in cases {
        let trunkline = Trunkline::with_queue(&["--type", "text"]);
        trunkline.ok(&["enqueue", "q", "archived", "waiting"]);
        sql(&trunkline.url, "select trunkline.archive('q', id, attempt) from trunkline.lease('q', 1)");
        let mut observer = Session::begin(&trunkline.url, "select 1");
        let holder = Session::begin(&trunkline.url, &format!("begin; {lock}"));
        let child = trunkline.start(args);
        let waits = format!("{OURS} and wait_event_type = 'Lock'");
        eventually("it waits for the lock", || observer.run(&waits) == ["1"]);
        signal(&child, name);
        let (code, error) = failed(&child.wait_with_output().expect("it ends"), args);
        assert_eq!(code, 130, "{args:?}: {error}");
        assert!(error.contains("error: interrupted: ") && error.contains("nothing was changed"), "{args:?}: {error}");
        drop(holder);
        eventually("its sessions end", || observer.run(OURS) == ["0"]);
        assert_eq!(trunkline.lines(&["dequeue", "q"]), ["waiting"], "{args:?}");
        assert_eq!(trunkline.lines(&["archive", "q", "--json"]).len(), 1, "{args:?}");
    }
}
