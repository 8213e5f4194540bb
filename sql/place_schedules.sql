-- In the transaction of the ticks.
select trunkline.place_schedules($1::text[]::tid[], $2, $3, $4)
