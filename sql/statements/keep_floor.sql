-- Stores the floor for processes and sessions that start later.
select trunkline.keep_floor($1, $2)
