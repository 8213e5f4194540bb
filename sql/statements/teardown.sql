-- Drops everything that belongs to Trunkline in this database, and all other objects that depend on
-- it.
set local search_path = pg_catalog, pg_temp;
do $$ begin execute format('drop schema if exists %I cascade', rtrim('trunkline.', '.')); end $$
