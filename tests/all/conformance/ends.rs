//! Sessions that end in the middle of some work. libpq reconnects only on request; the library
//! reconnects by itself.

use super::case::{Case, Step, Want, call, case, int4, int8, one, run};

pub fn cases() -> Vec<Case> {
    let end = "select pg_terminate_backend(pg_backend_pid()), pg_sleep(600)";
    let lost = |text| run(text, Want::Lost("57P01"));
    let usable = || Step::Run(call("select $1::int4 + 1", [int4(1)], one(int4(2))));
    vec![
        case("a session that is ended", [lost(end), usable(), lost(end), usable()]),
        case(
            "a session that is ended behind many rows",
            [
                lost(
                    "select n, case when n = 20000 then pg_terminate_backend(pg_backend_pid()) end, repeat('x', 100)
                 from generate_series(1, 100000) n",
                ),
                usable(),
            ],
        ),
        case(
            "a session that is ended before the commit",
            [
                run("create table ended (n int4)", Want::Touched(0)),
                lost(
                    "with done as (insert into ended values (1) returning n)
                 select pg_terminate_backend(pg_backend_pid()), pg_sleep(600) from done",
                ),
                run("select count(*) from ended", one(int8(0))),
            ],
        ),
    ]
}
