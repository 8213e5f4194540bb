-- By the catalog, because a table that refuses has no rows to tell it.
select exists (select from pg_catalog.pg_constraint c where c.conrelid = 'trunkline.{queue_}'::regclass and c.conname = 'drained')
