//! The statements, shared by all drivers that take statements as text.

use std::sync::LazyLock;

use crate::work::MANY;

/// Selects a number.
pub const SELECT: &str = "select $1::int8";
/// Selects a row by its key.
pub const GET: &str = "select id, name, email, age, score, active from roster where id = $1";
/// Selects rows by their keys.
pub const IN: &str = "select id, name, email, age, score, active from roster where id = any($1)";
/// Selects rows by a key that many rows share.
pub const LIST: &str = "select id, name, email, age, score, active from roster where team = $1";
/// Selects all rows.
pub const RESULTS: &str = "select id, name, email, age, score, active from roster";
/// Selects a thousand rows.
pub const STREAM: &str = "select id, name, email, age, score, active from roster where id <= 1000";
/// Declares a cursor for the rows that [`STREAM`] selects.
pub const CURSOR: &str =
    "declare rows no scroll cursor for select id, name, email, age, score, active from roster where id <= 1000";
/// Inserts a row, and returns its id.
pub const INSERT: &str =
    "insert into person (name, email, age, score, active) values ($1, $2, $3, $4, $5) returning id";
/// Inserts many rows, and returns their ids.
pub const INSERT_ARRAYS: &str = "insert into person (name, email, age, score, active)
    select * from unnest($1::text[], $2::text[], $3::int4[], $4::float8[], $5::bool[]) returning id";
/// Inserts a row of two columns.
pub const APPEND: &str = "insert into entry (n, word) values ($1, $2)";
/// Inserts many rows of two columns.
pub const APPEND_ARRAYS: &str = "insert into entry (n, word) select * from unnest($1::int8[], $2::text[])";
/// Inserts a row with a given id.
pub const ADD: &str = "insert into person (id, name, email, age, score, active) values ($1, $2, $3, $4, $5, $6)";
/// Inserts or updates a row with a given id.
pub const UPSERT: &str = "insert into person (id, name, email, age, score, active) values ($1, $2, $3, $4, $5, $6)
    on conflict (id) do update set name = excluded.name, email = excluded.email, age = excluded.age,
        score = excluded.score, active = excluded.active";
/// Inserts or updates many rows.
pub const UPSERT_ARRAYS: &str = "insert into person (id, name, email, age, score, active)
    select * from unnest($1::int8[], $2::text[], $3::text[], $4::int4[], $5::float8[], $6::bool[])
    on conflict (id) do update set name = excluded.name, email = excluded.email, age = excluded.age,
        score = excluded.score, active = excluded.active";
/// Updates one column of a row.
pub const UPDATE: &str = "update person set age = $2 where id = $1";
/// Updates one column of many rows.
pub const UPDATE_ARRAYS: &str = "update person set age = new.age
    from unnest($1::int8[], $2::int4[]) as new (id, age) where person.id = new.id";
/// Updates every column of a row.
pub const REPLACE: &str = "update person set name = $2, email = $3, age = $4, score = $5, active = $6 where id = $1";
/// Updates every column of many rows.
pub const REPLACE_ARRAYS: &str = "update person
    set name = new.name, email = new.email, age = new.age, score = new.score, active = new.active
    from unnest($1::int8[], $2::text[], $3::text[], $4::int4[], $5::float8[], $6::bool[])
        as new (id, name, email, age, score, active)
    where person.id = new.id";
/// Deletes a row.
pub const DELETE: &str = "delete from person where id = $1";
/// Deletes many rows.
pub const DELETE_ARRAY: &str = "delete from person where id = any($1)";
/// Deletes a range of rows.
pub const DELETE_WHERE: &str = "delete from person where id >= $1 and id < $2";
/// Selects the remaining rows of a range.
pub const LEFT: &str = "select id, name, email, age, score, active from person where id >= $1 and id < $2";
/// Evaluates all parameters and returns no row.
pub const PARAMETERS: &str = "select 1 where ($1::int8, $2::text, $3::text, $4::int4, $5::float8, $6::bool) is null";
/// Evaluates the columns of `MANY` rows, as [`PARAMETERS`] evaluates the columns of one row.
pub static MANY_PARAMETERS: LazyLock<String> = LazyLock::new(|| {
    let row = |at: usize| {
        let [id, name, email, age, score, active] = std::array::from_fn(|column| 6 * at + column + 1);
        format!("(${id}::int8, ${name}::text, ${email}::text, ${age}::int4, ${score}::float8, ${active}::bool) is null")
    };
    format!("select 1 where {}", (0..MANY).map(row).collect::<Vec<_>>().join(" and "))
});
/// Takes the amount of a transfer from an account.
pub const TAKE: &str = "update account set balance = balance - $2 where id = $1 returning balance";
/// Adds the amount of a transfer to an account.
pub const GIVE: &str = "update account set balance = balance + $2 where id = $1 returning balance";
