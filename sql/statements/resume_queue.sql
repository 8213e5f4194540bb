-- The function creates the queue's functions again and wakes its consumers.
select trunkline.resume_queue($1)
