-- Returns the queue of a schedule: the form that acts on the schedule is not trusted for it.
select s.queue from trunkline.schedule s where s.name = $1
