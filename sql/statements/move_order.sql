-- Returns rows that another shard may receive, in the order in which consumers would receive them,
-- and what decides this order. A row's id does not decide it: a delayed message is older.
select q.id, q.due_at from trunkline.{queue_} q
where q.attempt operator(pg_catalog.=) 0 or q.error is not null or q.due_at operator(pg_catalog.<=) pg_catalog.clock_timestamp()
order by q.due_at, q.id operator(pg_catalog.+) 0 limit $1::int
