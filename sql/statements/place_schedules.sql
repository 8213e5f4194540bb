-- Runs in the transaction of the ticks.
select trunkline.place_schedules($1::pg_catalog.text[]::pg_catalog.tid[], $2, $3, $4)
