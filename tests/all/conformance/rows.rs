//! Answers with no rows, many rows, rows without columns and large values. Also the number of
//! affected rows, and notices between rows.

use std::sync::LazyLock;

use trunkline::Bytes;

use super::{
    answer::{Raw, Value, raw},
    case::{
        Case,
        End::{Commit, Rollback},
        Step, Want, call, case, int4, int8, one, run, text,
    },
};

const SIXTEEN_MB: usize = 16 << 20;

/// 16 MB of pseudo-random bytes.
static LARGE: LazyLock<Bytes> = LazyLock::new(|| {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..SIXTEEN_MB).map(|_| next()).collect()
});

pub fn cases() -> Vec<Case> {
    [shapes(), many(), large(), counts(), transactions(), asides()].into_iter().flatten().collect()
}

/// The anonymous record `(1, 'x', null)`.
pub const RECORD: &[u8] = b"\0\0\0\x03\0\0\0\x17\0\0\0\x04\0\0\0\x01\0\0\0\x19\0\0\0\x01x\0\0\0\x17\xff\xff\xff\xff";

fn shapes() -> Vec<Case> {
    vec![
        case("no rows", [run("select 1 as one where false", Want::Rows(vec![]))]),
        case("no statement", [run("", Want::Touched(0)), run(" -- nothing\n;", Want::Touched(0))]),
        case("no columns", [run("select from generate_series(1, 3)", Want::Rows(vec![vec![]; 3]))]),
        case("an anonymous record", [run("select row(1, 'x'::text, null::int4)", one(raw(RECORD)))]),
        case("records", [run("select row() from generate_series(1, 2)", Want::Rows(vec![vec![raw([0; 4])]; 2]))]),
        case("no value", [run("select pg_notify('nobody', '')", one(raw([])))]),
        case(
            "names of columns",
            [run(
                "select 1 as \"a b\", 2 as \"ä\", 3 as \"\"\"\", 4, 5 as \"a b\"",
                Want::Rows(vec![(1..=5).map(int4).collect()]),
            )],
        ),
        case(
            "as many columns as there can be",
            [run(
                &format!("select {}", (1..=1664).map(|n| n.to_string()).collect::<Vec<_>>().join(",")),
                Want::Rows(vec![(1..=1664).map(int4).collect()]),
            )],
        ),
        case(
            "many parameters",
            [Step::Run(call(
                &format!("select array[{}]", (1..=1000).map(|n| format!("${n}::int2")).collect::<Vec<_>>().join(",")),
                (1..=1000_i16).map(|n| raw(n.to_be_bytes())),
                one(numbers(1000)),
            ))],
        ),
        case(
            "null among values",
            [Step::Run(call(
                "select $1::text, $2::int4, $3::text",
                [text(""), None, text("x")],
                Want::Rows(vec![vec![text(""), None, text("x")]]),
            ))],
        ),
        case(
            "one parameter in two places",
            [Step::Run(call("select $2::text || $1::text || $2", [text("b"), text("a")], one(text("aba"))))],
        ),
    ]
}

/// Returns the numbers from 1 to `count`, as an array of `int2`.
fn numbers(count: i16) -> Value {
    let header = [1, 0, 21, i32::from(count), 1].into_iter().flat_map(i32::to_be_bytes);
    let element = |n: i16| 2_i32.to_be_bytes().into_iter().chain(n.to_be_bytes());
    raw(header.chain((1..=count).flat_map(element)).collect::<Vec<u8>>())
}

fn many() -> Vec<Case> {
    const MANY: i32 = 20_000;
    let rows = (1..=MANY).map(|n| vec![int4(n), (n % 7 > 0).then(|| Raw(format!("row {n}").into()))]);
    vec![
        case(
            "many rows",
            [Step::Run(call(
                "select n, case when n % 7 > 0 then 'row ' || n end from generate_series(1, $1::int4) n",
                [int4(MANY)],
                Want::Rows(rows.collect()),
            ))],
        ),
        case("many rows of nothing", [run("select from generate_series(1, 10000)", Want::Rows(vec![vec![]; 10_000]))]),
    ]
}

fn large() -> Vec<Case> {
    let large = Some(Raw(LARGE.clone()));
    let text = Some(Raw(Bytes::from("ä€😀x".repeat(SIXTEEN_MB / 10))));
    vec![
        case("16 MiB there and back", [Step::Run(call("select $1::bytea", [large.clone()], one(large.clone())))]),
        case(
            "16 MiB of text",
            [Step::Run(call(
                "select $1::text, length($1)",
                [text.clone()],
                Want::Rows(vec![vec![text, int4((SIXTEEN_MB / 10 * 4) as i32)]]),
            ))],
        ),
        case(
            "16 MiB kept",
            [
                run("create table large (bytes bytea)", Want::Touched(0)),
                Step::Run(call("insert into large values ($1)", [large.clone()], Want::Touched(1))),
                run("select length(bytes) from large", one(int4(SIXTEEN_MB as i32))),
                run("select bytes from large", one(large)),
            ],
        ),
    ]
}

fn counts() -> Vec<Case> {
    vec![
        case(
            "rows touched",
            [
                run("create table counted (n int4 primary key, word text)", Want::Touched(0)),
                run("insert into counted select n from generate_series(1, 10) n", Want::Touched(10)),
                Step::Run(call("insert into counted values ($1, $2)", [int4(11), None], Want::Touched(1))),
                run("insert into counted values (11, 'again') on conflict do nothing", Want::Touched(0)),
                run("update counted set word = 'x' where n > 8", Want::Touched(3)),
                run("update counted set word = 'x' where false", Want::Touched(0)),
                run("delete from counted where n <= 4", Want::Touched(4)),
                run("delete from counted where n = 5 returning n, word", Want::Rows(vec![vec![int4(5), None]])),
                run("select count(*) from counted", one(int8(6))),
                run("create table copied as select * from counted", Want::Touched(6)),
                run("truncate counted", Want::Touched(0)),
                run(
                    "with gone as (delete from copied returning n) select sum(n) from gone",
                    one(int8(6 + 7 + 8 + 9 + 10 + 11)),
                ),
                run("drop table copied", Want::Touched(0)),
            ],
        ),
        case(
            "rows touched by a merge",
            [
                run("create table merged (n int4 primary key, word text)", Want::Touched(0)),
                run(
                    "insert into merged values (1, 'a'), (2, 'b') on conflict (n) do update set word = 'c'",
                    Want::Touched(2),
                ),
                run(
                    "insert into merged values (2, 'x'), (3, 'y') on conflict (n) do update set word = 'c'",
                    Want::Touched(2),
                ),
                run(
                    "select word from merged order by n",
                    Want::Rows(vec![vec![text("a")], vec![text("c")], vec![text("y")]]),
                ),
            ],
        ),
    ]
}

fn transactions() -> Vec<Case> {
    let insert = |n| call("insert into kept values ($1)", [int4(n)], Want::Touched(1));
    let count = |n| run("select count(*) from kept", one(int8(n)));
    vec![
        case(
            "what is committed is kept, and else nothing",
            [
                run("create table kept (n int4)", Want::Touched(0)),
                Step::Transaction(vec![(0..100).map(insert).collect()], Commit),
                count(100),
                Step::Transaction(
                    vec![(0..10).map(insert).collect(), vec![call("delete from kept", [], Want::Touched(110))]],
                    Rollback,
                ),
                count(100),
            ],
        ),
        case(
            "answers come in order",
            [Step::Transaction(
                vec![(0..50).map(|n| call("select $1::int4 * 2", [int4(n)], one(int4(2 * n)))).collect()],
                Commit,
            )],
        ),
    ]
}

/// Returns cases with server messages that belong to no answer.
fn asides() -> Vec<Case> {
    let shout = "create function shout(n int4) returns int4 language plpgsql as
                 $$ begin raise notice 'n is %', n; return n; end $$";
    vec![
        case(
            "notices between rows",
            [
                run(shout, Want::Touched(0)),
                run(
                    "select shout(n) from generate_series(1, 100) n",
                    Want::Rows((1..=100).map(|n| vec![int4(n)]).collect()),
                ),
                run("do $$ begin raise warning 'careful'; raise notice 'ä€😀'; end $$", Want::Touched(0)),
                run("drop table if exists never_there", Want::Touched(0)),
            ],
        ),
        case(
            "settings that the server reports",
            [Step::Transaction(
                vec![vec![
                    call("set local datestyle = 'German'", [], Want::Touched(0)),
                    call("select date '2024-02-29'::text", [], one(text("29.02.2024"))),
                    call("set local application_name = 'another'", [], Want::Touched(0)),
                ]],
                Commit,
            )],
        ),
        case(
            "a notification to oneself",
            [Step::Transaction(
                vec![vec![
                    call("listen aside", [], Want::Touched(0)),
                    call("notify aside, 'heard'", [], Want::Touched(0)),
                    call("unlisten aside", [], Want::Touched(0)),
                ]],
                Commit,
            )],
        ),
    ]
}
