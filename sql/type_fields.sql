-- The fields of a composite type, in their order.
select a.attname, a.atttypid from pg_catalog.pg_attribute a
where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped order by a.attnum
