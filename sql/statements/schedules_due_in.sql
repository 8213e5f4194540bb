-- Returns how long a session that makes ticks may sleep.
select due_in, clock from trunkline.schedules_due_in($1)
