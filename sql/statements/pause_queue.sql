-- The queue's functions are made anew.
select trunkline.pause_queue($1)
