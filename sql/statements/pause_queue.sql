-- The queue's functions are made again.
select trunkline.pause_queue($1)
