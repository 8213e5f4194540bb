-- Places go back and forth as texts: no driver knows what else they are.
select tid::pg_catalog.text, name, queue, expression, zone, missed, placed, next_at, clock from trunkline.claim_schedules($1, $2)
