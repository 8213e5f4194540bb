//! The statements, in the words that all drivers share which take words.

/// A number.
pub const SELECT: &str = "select $1::int8";
/// A row by its key.
pub const GET: &str = "select id, name, email, age, score, active from roster where id = $1";
/// Rows by their keys.
pub const IN: &str = "select id, name, email, age, score, active from roster where id = any($1)";
/// Rows by another key.
pub const LIST: &str = "select id, name, email, age, score, active from roster where team = $1";
/// All rows.
pub const RESULTS: &str = "select id, name, email, age, score, active from roster";
/// A row that gets its id.
pub const INSERT: &str =
    "insert into person (name, email, age, score, active) values ($1, $2, $3, $4, $5) returning id";
/// Many of them.
pub const INSERT_ARRAYS: &str = "insert into person (name, email, age, score, active)
    select * from unnest($1::text[], $2::text[], $3::int4[], $4::float8[], $5::bool[]) returning id";
/// A row of two columns.
pub const APPEND: &str = "insert into entry (n, word) values ($1, $2)";
/// Many of them.
pub const APPEND_ARRAYS: &str = "insert into entry (n, word) select * from unnest($1::int8[], $2::text[])";
/// A row with its id.
pub const ADD: &str = "insert into person (id, name, email, age, score, active) values ($1, $2, $3, $4, $5, $6)";
/// A row with its id, whether or not it is there.
pub const UPSERT: &str = "insert into person (id, name, email, age, score, active) values ($1, $2, $3, $4, $5, $6)
    on conflict (id) do update set name = excluded.name, email = excluded.email, age = excluded.age,
        score = excluded.score, active = excluded.active";
/// Many of them.
pub const UPSERT_ARRAYS: &str = "insert into person (id, name, email, age, score, active)
    select * from unnest($1::int8[], $2::text[], $3::text[], $4::int4[], $5::float8[], $6::bool[])
    on conflict (id) do update set name = excluded.name, email = excluded.email, age = excluded.age,
        score = excluded.score, active = excluded.active";
/// One column.
pub const UPDATE: &str = "update person set age = $2 where id = $1";
/// Of many rows.
pub const UPDATE_ARRAYS: &str = "update person set age = new.age
    from unnest($1::int8[], $2::int4[]) as new (id, age) where person.id = new.id";
/// Every column.
pub const REPLACE: &str = "update person set name = $2, email = $3, age = $4, score = $5, active = $6 where id = $1";
/// Of many rows.
pub const REPLACE_ARRAYS: &str = "update person
    set name = new.name, email = new.email, age = new.age, score = new.score, active = new.active
    from unnest($1::int8[], $2::text[], $3::text[], $4::int4[], $5::float8[], $6::bool[])
        as new (id, name, email, age, score, active)
    where person.id = new.id";
/// A row.
pub const DELETE: &str = "delete from person where id = $1";
/// Many of them.
pub const DELETE_ARRAY: &str = "delete from person where id = any($1)";
/// A range.
pub const DELETE_WHERE: &str = "delete from person where id >= $1 and id < $2";
/// What is there.
pub const LEFT: &str = "select id, name, email, age, score, active from person where id >= $1 and id < $2";
/// Parameters that are looked at and thrown away: no row comes.
pub const PARAMETERS: &str = "select 1 where ($1::int8, $2::text, $3::text, $4::int4, $5::float8, $6::bool) is null";
/// A transfer's first half.
pub const TAKE: &str = "update account set balance = balance - $2 where id = $1 returning balance";
/// A transfer's second half.
pub const GIVE: &str = "update account set balance = balance + $2 where id = $1 returning balance";
