-- Returns the queue of a schedule. The queue in the form that acts on the schedule is not trusted.
select s.queue from trunkline.schedule s where s.name = $1
