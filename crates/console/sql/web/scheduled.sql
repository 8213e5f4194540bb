-- Schedules that make ticks, by queue, and when the next of them is.
select s.queue, count(*), min(s.next_at) from trunkline.schedule s where not s.paused group by 1
