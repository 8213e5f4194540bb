-- Returns a page, as dead.sql does for dead letters.
select id, enqueued_at, archived_at, attempt, array[payload] as payload, metadata, coalesce((own operator(pg_catalog.->>) 'lane')::int, 0) as priority, null::pg_catalog.text as key from trunkline.page(null::trunkline.{archive_}, $1, $2)
-- Makes the server plan this statement again after the table is recreated.
where 'trunkline.{archive_}'::pg_catalog.regclass is not null
