-- The queue's functions are made anew, and its consumers are woken.
select trunkline.resume_queue($1)
