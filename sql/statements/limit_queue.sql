-- All limits of the queue; null is none.
select trunkline.limit_queue($1, $2, $3, $4, $5, $6)
