-- Returns a page: the primary key is the cursor.
select id, enqueued_at, dead_at, attempt, error, array[payload] as payload, metadata, 0 as priority, null::pg_catalog.text as key from trunkline.page(null::trunkline.{dead_}, $1, $2)
