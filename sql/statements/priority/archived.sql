-- Returns a page, as dead.sql does for dead letters.
select id, enqueued_at, archived_at, attempt, array[payload] as payload, metadata, coalesce((own operator(pg_catalog.->>) 'lane')::int, 0) as priority, null::pg_catalog.text as key from trunkline.page_after((select r from trunkline.{archive_} r where false), $1, $2)
