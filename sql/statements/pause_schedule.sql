-- Fails if the schedule does not exist.
select trunkline.pause_schedule($1)
