-- Returns one message in any state, with the time at which it ended or is due, and only as much of the payload as a page shows. The server formats the
-- metadata.
select f.state, f.attempt, coalesce(f.due_at, f.ended_at), f.enqueued_at, left(f.error, 20000), left(f.payload, 65537), octet_length(f.payload)::bigint,
       left(jsonb_pretty(f.metadata), 65537), f.priority, f.key
from trunkline.find($1, $2) f
