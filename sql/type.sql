-- What a type is made of, for parameters and columns of types that Postgres does not come with.
select t.typname, n.nspname, t.typtype,
    coalesce(r.rngsubtype, case when t.typlen = -1 then t.typelem end, 0::oid), t.typbasetype, t.typrelid
from pg_catalog.pg_type t
join pg_catalog.pg_namespace n on n.oid = t.typnamespace
left join pg_catalog.pg_range r on r.rngtypid = t.oid
where t.oid = $1
