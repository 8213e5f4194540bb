-- One message, wherever it is; metadata as text, folded open by the server.
select f.state, f.attempt, f.due_at, f.ended_at, f.enqueued_at, f.error, f.payload, jsonb_pretty(f.metadata), f.priority, f.key
from trunkline.find($1, $2) f
