-- Stores the floor for processes and sessions that start later. Returns whether a compaction may be worth its cost.
select trunkline.keep_floor($1, $2), trunkline.is_large($1)
