//! The program on several servers.

use std::process::Stdio;

use serde_json::Value;
use trunkline_embedded::{Cluster, Stop};

use crate::fixture::{Folder, Session, Trunkline, eventually, failed, rows, sql};

/// Creates two databases that are shards of each other, with the queue `q`.
fn two() -> Trunkline {
    let (one, other) = (Trunkline::bare(), Trunkline::bare());
    let both = Trunkline { url: format!("{}\n{}", one.url, other.url) };
    let told = both.ok(&["migrate"]);
    assert_eq!(told.lines().count(), 2, "{told}");
    both.ok(&["queue", "create", "q", "--type", "text", "--max-attempts", "1"]);
    both
}

fn urls(both: &Trunkline) -> Vec<&str> {
    both.url.lines().collect()
}

fn shards(both: &Trunkline) -> Vec<String> {
    let listed = both.json(&["shard", "list", "--json"]);
    listed.iter().map(|line| line["shard"].as_str().expect("reached").to_owned()).collect()
}

#[test]
fn messages_go_to_all_servers_and_come_from_all() {
    let both = two();
    let shards = shards(&both);
    // Runs the program until both servers received a message, because each run starts with one of
    // them.
    let of = |id: &String| shards.iter().position(|shard| id.starts_with(&format!("{shard}:"))).expect("one of them");
    let mut seen = [0, 0];
    eventually("both get something", || {
        seen[of(&both.lines(&["enqueue", "q", "x"])[0])] += 1;
        seen.iter().all(|count| *count > 0)
    });
    both.ok(&["purge", "q", "--yes"]);
    let mut ids = Vec::new();
    for n in 0..6 {
        let one = Trunkline { url: urls(&both)[n % 2].to_owned() };
        ids.push(format!("{}:{}", shards[n % 2], one.lines(&["enqueue", "q", &n.to_string()])[0]));
    }
    let stats = both.json(&["stats", "q", "--json"]);
    let due: Vec<(Option<&str>, u64)> =
        stats.iter().map(|line| (line["shard"].as_str(), line["due"].as_u64().expect("a number"))).collect();
    assert_eq!((due[0], due.len()), ((None, 6), 3));
    assert_eq!(due[1].1 + due[2].1, 6);
    let table = both.ok(&["stats"]);
    assert!(table.contains("shard") && table.contains("all") && table.contains(&shards[0]), "{table}");

    let found = both.json(&["find", "q", &ids[3], "--json"]);
    assert_eq!((&found[0]["id"], &found[0]["payload"]), (&ids[3].as_str().into(), &"3".into()));
    assert_eq!(both.lines(&["cancel", "q", &ids[0], &ids[1]]).len(), 2);
    let peeked = both.json(&["peek", "q", "--json"]);
    assert_eq!(
        peeked.iter().map(|line| line["payload"].clone()).collect::<Vec<_>>(),
        ["2", "3", "4", "5"].map(Value::from)
    );
    let got = both.json(&["dequeue", "q", "--json", "-n", "3"]);
    assert!(got.len() == 3 && got.iter().all(|line| ids.iter().any(|id| line["id"] == id.as_str())), "{got:?}");
    assert_eq!(both.lines(&["dequeue", "q", "--mode", "at-most-once"]).len(), 1);
    assert_eq!(both.json(&["stats", "q", "--json"])[0]["messages"], 0);
}

#[test]
fn urls_can_be_arguments_and_an_id_must_fit_them() {
    let both = two();
    let [one, other] = urls(&both)[..] else { panic!("two") };
    let alone = Trunkline { url: String::new() };
    let args = ["--database-url", one, "--database-url", other];
    let id = alone.lines(&[&["enqueue", "q", "x"][..], &args].concat()).remove(0);
    let (code, why) = both.fails(&["find", "q", "1024"]);
    assert!(code == 2 && why.contains("1024 does not name its shard"), "{why}");
    let (code, why) = alone.fails(&["find", "q", &id, "--database-url", one]);
    assert!(code == 2 && why.contains("hint: give each server"), "{why}");
    let (code, why) = both.fails(&["find", "q", "12:7"]);
    assert!(code == 2 && why.contains("eight hexadecimal digits"), "{why}");
    let (code, why) = both.fails(&["teardown", "--yes"]);
    assert!(code == 2 && why.contains("works on one server"), "{why}");
    let (code, why) = alone.fails(&["stats", "--database-url", one, "--database-url", one]);
    assert!(code == 1 && why.contains("name each server once"), "{why}");
    let listed = both.json(&["queue", "list", "--json"]);
    assert!(
        listed.len() == 2 && listed.iter().all(|line| line["server"].as_str().is_some_and(|at| at.contains("host="))),
        "{listed:?}"
    );
}

#[test]
fn commands_and_the_dead_letter_list_cover_all_servers() {
    let both = two();
    for n in 0..8 {
        Trunkline { url: urls(&both)[n % 2].to_owned() }.ok(&["enqueue", "q", &n.to_string()]);
    }
    let folder = Folder::new();
    let to = folder.join("seen");
    let exec = format!("read n; echo \"$TRUNKLINE_ID $n\" >> {}; test \"$n\" -lt 6 || exit 100", to.display());
    both.ok(&["work", "q", "--drain", "--exec", &exec]);
    let seen = std::fs::read_to_string(&to).expect("written");
    let shards = shards(&both);
    assert!(seen.lines().count() == 8 && shards.iter().all(|shard| seen.contains(&format!("{shard}:"))), "{seen}");
    let letters = both.json(&["dead", "list", "q", "--json"]);
    assert_eq!(letters.len(), 2);
    let first = letters[0]["id"].as_str().expect("a text");
    assert_eq!(both.json(&["dead", "list", "q", "--json", "--after", first]).len(), 1);
    assert_eq!(both.lines(&["dead", "replay", "q", first]), ["1"]);
    assert_eq!(both.lines(&["dead", "discard", "q", "--all", "--yes"]), ["1"]);
    assert_eq!(both.lines(&["purge", "q", "--yes"]), ["1"]);
}

#[test]
fn follower_hears_both_shards_and_ends_leases_where_they_began() {
    let both = two();
    let mut follower = both.start(&["dequeue", "q", "--follow", "-n", "20", "--archive"]);
    for n in 0..20 {
        both.ok(&["enqueue", "q", &n.to_string()]);
    }
    let output = follower.stdout.take().map(|out| std::io::read_to_string(out).expect("text")).expect("piped");
    assert!(follower.wait().expect("it ends").success());
    let mut got: Vec<u32> = output.lines().map(|line| line.parse().expect("a number")).collect();
    got.sort_unstable();
    assert_eq!(got, (0..20).collect::<Vec<_>>());
    assert_eq!(both.json(&["archive", "q", "--json"]).len(), 20);
}

#[test]
fn a_shard_drains_and_comes_back() {
    let both = two();
    let shard = shards(&both).remove(1);
    for n in 0..6 {
        both.ok(&["enqueue", "q", &n.to_string()]);
    }
    Trunkline { url: urls(&both)[1].to_owned() }.ok(&["schedule", "set", "nightly", "q", "0 3 * * *", "7"]);
    let mut drain = both.command(&["shard", "drain", &shard]);
    let mut drain = drain.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs");
    let state = || both.json(&["shard", "list", "--json"])[1]["state"].as_str().expect("a text").to_owned();
    eventually("it drains", || state() == "drains" || state() == "drained");
    both.ok(&["dequeue", "q"]);
    let output = std::io::read_to_string(drain.stdout.take().expect("piped")).expect("text");
    assert!(drain.wait().expect("it ends").success());
    assert!(output.contains(&format!("shard {shard} is drained; 0 dead letters")), "{output}");
    assert!(output.contains("its schedules enqueue nothing now: nightly"), "{output}");
    assert_eq!(state(), "drained");
    for n in 0..4 {
        assert!(!both.lines(&["enqueue", "q", &n.to_string()])[0].starts_with(&shard));
    }
    // A program that is connected only to the drained server gets an error.
    let (code, why) = Trunkline { url: urls(&both)[1].to_owned() }.fails(&["enqueue", "q", "x"]);
    assert!(code == 1 && why.contains("drained on this server"), "{why}");
    let other = shards(&both).remove(0);
    let (code, why) = both.fails(&["shard", "drain", &other]);
    assert!(code == 1 && why.contains("no other shard"), "{why}");
    both.ok(&["shard", "resume", &shard]);
    assert_eq!(state(), "open");
    sql(urls(&both)[1], "select trunkline.enqueue('q', 'again'::text)");
    assert_eq!(rows(urls(&both)[1], "select count(*) from trunkline.queue_q"), ["1"]);
}

/// Kills the drain at about twenty points, while the moved messages are consumed.
#[test]
fn drain_that_moves_survives_any_number_of_kills() {
    let both = two();
    let shard = shards(&both).remove(1);
    let [other, from] = urls(&both)[..] else { panic!("two") };
    sql(from, "select trunkline.enqueue('q', n::text) from generate_series(1, 2500) n");
    sql(from, "select trunkline.enqueue('q', 'later'::text, interval '1 day')");
    sql(other, "create table got (payload text)");
    // Slows down moves, so that many messages are left at each kill.
    sql(
        from,
        "create function public.slow() returns trigger language plpgsql as $$ begin perform pg_sleep(0.005); return old; end $$;
         create trigger slow before delete on trunkline.queue_q for each row execute function public.slow()",
    );
    let there = || rows(from, "select count(*) from trunkline.queue_q")[0].parse::<u32>().expect("a number");
    let (mut kills, mut left) = (0, there());
    while left > 0 {
        let mut drain = both.start(&["shard", "drain", "--move", &shard]);
        let goal = left.saturating_sub(100 + 7 * kills);
        eventually("some have moved", || there() <= goal);
        drain.kill().expect("it ran, or had ended");
        drain.wait().expect("it has ended");
        kills += 1;
        sql(other, "insert into got select payload from trunkline.take('q', 10)");
        left = there();
    }
    assert!(kills > 5, "{kills}");
    let told = both.ok(&["shard", "drain", "--move", &shard]);
    assert!(told.contains("is drained"), "{told}");
    sql(other, "insert into got select payload from trunkline.take('q', 10000)");
    let seen = "select count(*) || ' ' || count(distinct payload) || ' ' || max(payload::int) from got";
    assert_eq!(rows(other, seen), ["2500 2500 2500"]);
    assert_eq!(
        rows(other, "select payload || ' ' || (due_at > now() + interval '23 h') from trunkline.messages('q')"),
        ["later true"]
    );
    assert_eq!(rows(from, "select count(*) from trunkline.moving"), ["0"]);
}

#[test]
fn messages_of_an_interrupted_move_are_shown_and_not_forgotten() {
    let both = two();
    let shard = shards(&both).remove(1);
    let from = urls(&both)[1];
    sql(from, "select trunkline.enqueue('q', 'moves'::text)");
    both.ok(&["shard", "drain", "--move", &shard]);
    // Inserts a row as a killed drain leaves it. Its target is a shard that was not named.
    sql(
        from,
        "insert into trunkline.moving values ('q', 77, 1048576, now(), now(), 0, 0, null, 3, '{a,b,c}', null, null)",
    );
    let moving = |line: &serde_json::Value| (line["state"].clone(), line["moving"].clone());
    assert_eq!(moving(&both.json(&["shard", "list", "--json"])[1]), ("drains".into(), 3.into()));
    let table = both.ok(&["shard", "list"]);
    assert!(table.lines().next().is_some_and(|head| head.contains("moving")), "{table}");
    let (code, why) = both.fails(&["shard", "resume", &shard]);
    assert!(code == 1 && why.contains("takes messages again, but 3 of its messages are still on their way"), "{why}");
    let doctor = both.run(&["doctor", "--json"]);
    let found = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(found.contains("3 messages are on their way to shard 0000004d"), "{found}");
    // Follows the guide for a server that is lost: sends the messages to another shard instead.
    sql(from, &format!("update trunkline.moving set target = ('x' || '{}')::bit(32)::int", shards(&both)[0]));
    both.ok(&["shard", "resume", &shard]);
    assert_eq!(moving(&both.json(&["shard", "list", "--json"])[1]), ("open".into(), 0.into()));
    assert_eq!(
        rows(urls(&both)[0], "select payload from trunkline.messages('q') order by 1"),
        ["a", "b", "c", "moves"]
    );
}

#[test]
fn result_that_lacks_a_server_is_an_error() {
    let mut both = two();
    both.ok(&["enqueue", "q", "x"]);
    both.url += "\npostgres://127.0.0.1:1/gone";
    for command in [
        &["peek", "q"][..],
        &["dead", "list", "q"],
        &["dead", "replay", "q", "--all"],
        &["dead", "discard", "q", "--all", "--yes"],
        &["archive", "q"],
        &["prune", "q", "--older-than", "1d"],
        &["compact", "q"],
        &["purge", "q", "--yes"],
        &["dequeue", "q"],
        &["dequeue", "q", "--mode", "at-most-once", "-n", "2"],
        &["work", "q", "--drain", "--exec", "true"],
    ] {
        let (code, why) = both.fails(command);
        assert_eq!(code, 1, "{command:?}: {why}");
        assert!(why.contains("the result is only of the other servers: 127.0.0.1:1"), "{command:?}: {why}");
    }
    both.ok(&["enqueue", "q", "y"]);
    let got = both.run(&["dequeue", "q", "-n", "1"]);
    assert!(got.status.success() && got.stdout == b"y\n", "as many as wanted: {got:?}");
    let stats = both.json(&["stats", "q", "--json"]);
    assert_eq!((&stats[0]["messages"], &stats[0]["partial"]), (&0.into(), &true.into()));
    assert!(stats[1..].iter().all(|part| part["partial"].is_null()), "{stats:?}");
    let table = both.ok(&["stats"]);
    assert!(table.contains("partial") && !table.contains("all"), "{table}");
    // Without a reader, the doctor still reports by its exit code that something is wrong.
    let mut doctor = both.start(&["doctor"]);
    drop(doctor.stdout.take());
    assert_eq!(doctor.wait().expect("it ends").code(), Some(1));
}

/// The server is away when the purge begins, and has joined before it ends.
#[test]
fn server_that_comes_back_during_the_work_is_missing_from_the_result() {
    let (one, away) = (Trunkline::bare(), Cluster::temporary().start().expect("a server"));
    let both = Trunkline { url: format!("{}\n{}", one.url, away.url("postgres")) };
    both.ok(&["migrate"]);
    both.ok(&["queue", "create", "q", "--type", "text"]);
    one.ok(&["enqueue", "q", "x"]);
    away.stop(Stop::Fast).expect("stopped");
    let holder = Session::begin(&one.url, "begin; select id from trunkline.queue_q for update");
    let purge = both.start(&["purge", "q", "--yes"]);
    let blocked = "select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    eventually("it purges", || !rows(&one.url, blocked).is_empty());
    away.start_again().expect("started");
    let joined = "select pid from pg_stat_activity
        where application_name = 'trunkline' and state = 'idle' and query like '%queue_q%'";
    eventually("it has opened the queue", || !rows(&away.url("postgres"), joined).is_empty());
    drop(holder);
    let (code, why) = failed(&purge.wait_with_output().expect("it ends"), &["purge"]);
    assert!(code == 1 && why.contains("the result is only of the other servers: "), "{code}: {why}");
    assert_eq!(both.lines(&["purge", "q", "--yes"]), ["0"]);
}

#[test]
fn drop_that_one_server_refused_is_resumed() {
    let both = two();
    let other = urls(&both)[1];
    sql(other, "create view public.seen as select id from trunkline.queue_q");
    let (code, why) = both.fails(&["queue", "drop", "q", "--yes"]);
    assert!(code == 1 && why.contains("seen"), "{why}");
    assert_eq!(both.json(&["queue", "list", "--json"]).len(), 1, "the first one has dropped it");
    sql(other, "drop view public.seen");
    both.ok(&["queue", "drop", "q", "--yes"]);
    assert!(both.json(&["queue", "list", "--json"]).is_empty());
    let (code, why) = both.fails(&["queue", "drop", "q", "--yes"]);
    assert!(code == 1 && why.contains("no queue"), "{why}");
}

#[test]
fn lines_with_unique_keys_are_enqueued_however_many_arrive_at_once() {
    let both = two();
    both.ok(&["queue", "create", "u", "--type", "int4", "--uniqueness"]);
    let line = |n: u32| match n % 5 {
        0 => format!("{{\"payload\":{n}}}\n"),
        3 => format!("{{\"payload\":\"x\",\"unique\":\"key {n}\"}}\n"),
        _ => format!("{{\"payload\":{n},\"unique\":\"key {n}\"}}\n"),
    };
    let lines: String = (0..50).map(line).collect();
    for enqueued in ["40\n", "10\n"] {
        let output = both.fed(&["enqueue", "u", "--json-lines", "-", "--bad-lines", "skip"], lines.as_bytes());
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), enqueued, "{output:?}");
    }
    assert_eq!(both.json(&["stats", "u", "--json"])[0]["messages"], 50);
}

/// One server acknowledges while the other is away. The retry reaches both.
#[test]
fn acknowledgement_that_one_server_missed_warns_of_no_message_of_the_other() {
    let (one, away) = (Trunkline::bare(), Cluster::temporary().start().expect("a server"));
    let both = Trunkline { url: format!("{}\n{}", one.url, away.url("postgres")) };
    both.ok(&["migrate"]);
    both.ok(&["queue", "create", "q", "--type", "text", "--lease", "600"]);
    both.url.lines().for_each(|url| sql(url, "select trunkline.enqueue('q', 'x'::text)"));
    let mut follower = both.start(&["dequeue", "q", "--follow", "-n", "2"]);
    let leased = "select id from trunkline.queue_q where attempt > 0";
    eventually("both are leased", || both.url.lines().all(|url| rows(url, leased).len() == 1));
    away.stop(Stop::Immediate).expect("stopped");
    let mut out = follower.stdout.take().expect("piped");
    std::io::Read::read_exact(&mut out, &mut [0; 4]).expect("two lines");
    eventually("one has acknowledged", || rows(&one.url, leased).is_empty());
    let mut errors = std::io::BufReader::new(follower.stderr.as_mut().expect("piped"));
    let mut said = String::new();
    while !said.contains("trying again until the database answers") {
        assert!(std::io::BufRead::read_line(&mut errors, &mut said).expect("text") > 0, "{said}");
    }
    away.start_again().expect("started");
    let output = follower.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !said.contains("were delivered"), "{said}");
    assert!(rows(&away.url("postgres"), "select id from trunkline.queue_q").is_empty());
}
