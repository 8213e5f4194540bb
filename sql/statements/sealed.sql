-- Reads the catalog, because a table that refuses rows has no row that could show it.
select exists (select from pg_catalog.pg_constraint c where c.conrelid operator(pg_catalog.=) 'trunkline.{queue_}'::pg_catalog.regclass and c.conname operator(pg_catalog.=) 'drained')
