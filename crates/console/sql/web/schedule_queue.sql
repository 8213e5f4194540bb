-- The queue comes from the schedule, because the form that acts on the schedule cannot be trusted.
select s.queue from trunkline.schedule s where s.name = $1
