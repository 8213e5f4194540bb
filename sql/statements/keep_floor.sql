-- Stores the floor for processes and sessions that start later. Returns whether a compaction may be worth its cost, and
-- whether the queue limits its leases.
select trunkline.keep_floor($1, $2), trunkline.is_large($1),
       exists (select from trunkline.queue q where q.name operator(pg_catalog.=) $1 and q.max_leased is not null)
