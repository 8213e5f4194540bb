-- The ctids are sent as texts in both directions: drivers do not know their type.
select tid::pg_catalog.text, name, queue, expression, zone, missed, placed, next_at, clock from trunkline.claim_schedules($1, $2)
