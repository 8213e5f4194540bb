-- One message, wherever it is, and its end, if it has ended, else when it is due; of the payload no more than a page shows. Metadata are folded open by the server.
select f.state, f.attempt, coalesce(f.due_at, f.ended_at), f.enqueued_at, left(f.error, 20000), left(f.payload, 65537), octet_length(f.payload)::bigint,
       left(jsonb_pretty(f.metadata), 65537), f.priority, f.key
from trunkline.find($1, $2) f
