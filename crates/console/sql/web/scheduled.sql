-- Returns, by queue, how many schedules make ticks and when the next tick is.
select s.queue, count(*), min(s.next_at) from trunkline.schedule s where not s.paused group by 1
