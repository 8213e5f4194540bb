-- Returns a page, as dead.sql does for dead letters.
select id, enqueued_at, archived_at, attempt, array[payload] as payload, metadata, 0 as priority, ((own operator(pg_catalog.->>) 'keys')::pg_catalog.text[])[1] as key from trunkline.page(null::trunkline.{archive_}, $1, $2)
-- Makes the server plan this statement again after the table is recreated.
where 'trunkline.{archive_}'::pg_catalog.regclass is not null
