-- Returns a page of dead letters. The primary key is the cursor of the pages.
select id, enqueued_at, dead_at, attempt, error, array[payload] as payload, metadata, 0 as priority, null::pg_catalog.text as key from trunkline.page(null::trunkline.{dead_}, $1, $2)
-- Makes the server plan this statement again after the table is recreated.
where 'trunkline.{dead_}'::pg_catalog.regclass is not null
