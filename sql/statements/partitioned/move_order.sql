-- Returns rows that another shard may receive, in the order of their places, and these places. The
-- order of due times is another one: a message that failed holds up the later ones of its key.
select q.id, q.place from trunkline.{queue_} q
where q.attempt operator(pg_catalog.=) 0 or q.error is not null or q.due_at operator(pg_catalog.<=) pg_catalog.clock_timestamp()
order by q.place, q.id limit $1::int
