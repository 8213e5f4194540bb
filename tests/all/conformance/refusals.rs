//! Refusals by the server have the same code and the same text, and the session still works.

use super::{
    answer::raw,
    case::{
        Call, Case,
        End::{Commit, Rollback},
        Step, Want, call, case, int4, int8, one, run, text,
    },
    rows::RECORD,
};

pub fn cases() -> Vec<Case> {
    [statements(), parameters(), rows(), transactions()].into_iter().flatten().collect()
}

/// Checks that the session runs the next statement.
fn usable() -> Step {
    Step::Run(call("select $1::int4 + 1", [int4(1)], one(int4(2))))
}

fn refused(name: &str, text: &str, code: &'static str, words: &'static str) -> Case {
    case(name, [run(text, Want::Refused(code, words)), usable()])
}

fn statements() -> Vec<Case> {
    vec![
        refused("no SQL", "selekt 1", "42601", "syntax error at or near \"selekt\""),
        refused("half a statement", "select (", "42601", "syntax error at end of input"),
        refused("two statements", "select 1; select 2", "42601", "multiple commands"),
        refused("no such table", "select * from nowhere", "42P01", "\"nowhere\""),
        refused("no such column", "select nothing", "42703", "\"nothing\""),
        refused("no such type", "select 'x'::nonsense", "42704", "\"nonsense\""),
        refused("no such operator, with a hint", "select 1 + true", "42883", "HINT: "),
        refused("another word in another script", "select \"ä€😀\"", "42703", "\"ä€😀\""),
        refused("what a function raises", RAISED, "TL999", "ERROR: no, ä€😀\nDETAIL: because\nHINT: do not"),
    ]
}

const RAISED: &str = "do $$ begin
    raise exception 'no, ä€😀' using errcode = 'TL999', detail = 'because', hint = 'do not', table = 't', constraint = 'c';
end $$";

fn parameters() -> Vec<Case> {
    let refused = |name: &str, text: &str, params: Vec<_>, code, words| {
        case(name, [Step::Run(call(text, params, Want::Refused(code, words))), usable()])
    };
    vec![
        refused("a parameter too few", "select $1::int4, $2::int4", vec![int4(1)], "08P01", "requires 2"),
        refused("a parameter too many", "select $1::int4", vec![int4(1), int4(2)], "08P01", "supplies 2"),
        refused("parameters for none", "select 1", vec![int4(1)], "08P01", "requires 0"),
        refused("a parameter without a type", "select $1 is null", vec![text("x")], "42P18", "parameter $1"),
        refused(
            "a number that is too short",
            "select $1::int4",
            vec![raw([0, 0, 1])],
            "08P01",
            "insufficient data left",
        ),
        refused("a number that is too long", "select $1::int4", vec![int8(1)], "22P03", "incorrect binary data format"),
        refused("a text that is none", "select $1::text", vec![raw([0xff])], "22021", "invalid byte sequence"),
        refused("a text with a zero byte", "select $1::text", vec![raw([b'a', 0])], "22021", "0x00"),
        refused("a jsonb of no known version", "select $1::jsonb", vec![raw([9, b'1'])], "XX000", "version number 9"),
        refused("json that is none", "select $1::json", vec![text("{")], "22P02", "DETAIL: "),
        refused("a label that is none", "select $1::mood", vec![text("sad")], "22P02", "\"sad\""),
        refused("what a domain forbids", "select $1::email", vec![text("nobody")], "23514", "email_check"),
        refused("an array of something else", "select $1::int4[]", vec![raw(OF_TEXTS)], "42804", "element type"),
        refused("an anonymous record", "select $1::record", vec![raw(RECORD)], "0A000", "anonymous composite types"),
        refused("an ltree of no known version", "select $1::ltree", vec![raw([9, b'a'])], "XX000", "version number 9"),
        refused("a bool for a number", "select 1 where $1", vec![raw([])], "08P01", "no data left"),
    ]
}

/// The array `{x}` of texts.
const OF_TEXTS: &[u8] = b"\0\0\0\x01\0\0\0\0\0\0\0\x19\0\0\0\x01\0\0\0\x01\0\0\0\x01x";

fn rows() -> Vec<Case> {
    vec![
        refused("division by zero", "select 1 / 0", "22012", "ERROR: division by zero"),
        // Fails long after the server has sent the first rows.
        refused(
            "division by zero behind many rows",
            "select 1000 / (20000 - n), repeat('x', 100) from generate_series(1, 100000) n",
            "22012",
            "division by zero",
        ),
        refused("out of range", "select 2147483647 + 1", "22003", "out of range"),
        refused("more rows than one", "select (select n from generate_series(1, 2) n)", "21000", "more than one row"),
        case(
            "a key that is there",
            [
                run("create table keyed (n int4 primary key, m int4 not null check (m > 0))", Want::Touched(0)),
                run("insert into keyed values (1, 1)", Want::Touched(1)),
                Step::Run(call(
                    "insert into keyed values ($1, 1)",
                    [int4(1)],
                    Want::Refused("23505", "DETAIL: Key (n)=(1)"),
                )),
                run("insert into keyed values (2, 1), (1, 1)", Want::Refused("23505", "\"keyed_pkey\"")),
                run(
                    "insert into keyed values (3, null)",
                    Want::Refused("23502", "DETAIL: Failing row contains (3, null)"),
                ),
                run("insert into keyed values (3, 0)", Want::Refused("23514", "\"keyed_m_check\"")),
                run("select count(*) from keyed", one(int8(1))),
            ],
        ),
        case(
            "a key that is only missed at the commit",
            [
                run("create table deferred (n int4 unique deferrable initially deferred)", Want::Touched(0)),
                run("insert into deferred values (1), (1)", Want::Refused("23505", "DETAIL: Key (n)=(1)")),
                run("select count(*) from deferred", one(int8(0))),
            ],
        ),
        case(
            "a statement that lasts too long",
            [
                Step::Transaction(
                    vec![
                        vec![call("set local statement_timeout = '20ms'", [], Want::Touched(0))],
                        vec![call("select pg_sleep(600)", [], Want::Refused("57014", "due to statement timeout"))],
                    ],
                    Rollback,
                ),
                usable(),
            ],
        ),
        case(
            "a statement that is cancelled",
            [
                run(
                    "do $$ begin perform pg_cancel_backend(pg_backend_pid()); perform pg_sleep(600); end $$",
                    Want::Refused("57014", "user request"),
                ),
                usable(),
            ],
        ),
    ]
}

fn insert(n: i32) -> Call {
    call("insert into undone values ($1)", [int4(n)], Want::Touched(1))
}

fn transactions() -> Vec<Case> {
    let zero = || call("select 1 / $1::int4", [int4(0)], Want::Refused("22012", "division by zero"));
    let follows = |text| call(text, [], Want::Refused("25P02", "current transaction is aborted"));
    let count = |n| run("select count(*) from undone", one(int8(n)));
    vec![
        case(
            "a transaction that has failed",
            [
                run("create table undone (n int4 unique)", Want::Touched(0)),
                Step::Transaction(vec![vec![insert(1), zero(), follows("select 1"), follows("select 2")]], Rollback),
                count(0),
                Step::Transaction(vec![vec![insert(1), zero()], vec![follows("select 1")]], Rollback),
                count(0),
                usable(),
            ],
        ),
        case(
            "a commit of a transaction that has failed",
            [
                Step::Transaction(vec![vec![insert(1)], vec![zero()], vec![follows("select 1")]], Commit),
                Step::Transaction(vec![vec![insert(1), insert(2), zero()]], Commit),
                count(0),
                usable(),
            ],
        ),
        case(
            "a statement in a transaction that cannot be parsed",
            [
                Step::Transaction(
                    vec![
                        vec![insert(1)],
                        vec![call("select nothing from undone", [], Want::Refused("42703", "\"nothing\""))],
                        vec![follows("select 1")],
                    ],
                    Commit,
                ),
                count(0),
            ],
        ),
        case(
            "back to a savepoint",
            [
                Step::Transaction(
                    vec![
                        vec![insert(1), call("savepoint s", [], Want::Touched(0))],
                        vec![zero()],
                        vec![follows("select 1")],
                        vec![call("rollback to s", [], Want::Touched(0))],
                        vec![insert(2), call("select count(*) from undone", [], one(int8(2)))],
                    ],
                    Commit,
                ),
                count(2),
                Step::Transaction(
                    vec![
                        vec![call("savepoint s", [], Want::Touched(0))],
                        vec![call("insert into undone values ($1)", [int4(2)], Want::Refused("23505", "(n)=(2)"))],
                        vec![call("rollback to s", [], Want::Touched(0))],
                        vec![zero()],
                    ],
                    Commit,
                ),
                count(2),
            ],
        ),
    ]
}
