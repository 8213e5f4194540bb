-- Everything of Trunkline's in this database, and whatever of others' hangs on it.
set local search_path = pg_catalog, pg_temp;
do $$ begin execute format('drop schema if exists %I cascade', rtrim('trunkline.', '.')); end $$
