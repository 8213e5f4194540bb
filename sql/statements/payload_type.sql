-- Prepared and never run: the description of its result is the answer.
select payload from trunkline.{queue_} limit 0
