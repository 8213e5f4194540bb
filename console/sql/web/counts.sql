-- The counts of a queue: one pass over its rows, without their payloads.
select s.due, s.delayed, s.leased, s.to_retry, s.dead, s.rows, extract(epoch from s.oldest_due)::float8 from trunkline.stats($1) s
