-- Fails if the schedule does not exist.
select trunkline.drop_schedule($1)
