-- Prepared, but never executed: only the description of its result is needed.
select payload from trunkline.{queue_} limit 0
