-- Returns the fields of a composite type, in order.
select a.attname, a.atttypid from pg_catalog.pg_attribute a
where a.attrelid operator(pg_catalog.=) $1 and a.attnum operator(pg_catalog.>) 0 and not a.attisdropped order by a.attnum
