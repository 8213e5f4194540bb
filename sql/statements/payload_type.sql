-- Prepared and never run: the description of its result is all that is needed.
select payload from trunkline.{queue_} limit 0
