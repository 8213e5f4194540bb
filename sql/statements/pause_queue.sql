-- The function creates the queue's functions again.
select trunkline.pause_queue($1)
