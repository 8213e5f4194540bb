-- Returns the schedules that make ticks, by queue, and the time of the next tick.
select s.queue, count(*), min(s.next_at) from trunkline.schedule s where not s.paused group by 1
