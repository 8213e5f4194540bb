-- Everything of Trunkline's in this database, and whatever of others' hangs on it.
do $$ begin execute format('drop schema if exists %I cascade', rtrim('trunkline.', '.')); end $$
