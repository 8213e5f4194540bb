-- Sets all limits of the queue; null means no limit.
select trunkline.limit_queue($1, $2, $3, $4, $5, $6)
