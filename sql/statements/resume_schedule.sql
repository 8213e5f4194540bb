-- Fails if the schedule does not exist.
select trunkline.resume_schedule($1)
