-- The queue's functions are made again, and its consumers are woken.
select trunkline.resume_queue($1)
