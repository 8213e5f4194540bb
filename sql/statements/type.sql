-- Returns the definition of a type, for parameters and columns of types that are not built into Postgres.
select t.typname, n.nspname, t.typtype,
    coalesce(r.rngsubtype, case when t.typlen operator(pg_catalog.=) '-1' then t.typelem end, 0::pg_catalog.oid), t.typbasetype, t.typrelid
from pg_catalog.pg_type t
join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) t.typnamespace
left join pg_catalog.pg_range r on r.rngtypid operator(pg_catalog.=) t.oid
where t.oid operator(pg_catalog.=) $1
