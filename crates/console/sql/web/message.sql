-- Returns one message, in whichever table it is, with the time at which it ended or, if it has not ended, is due. The payload is limited to what a
-- page shows. The server formats the metadata on several lines. The size of bytea is that of the bytes, as in messages.sql.
select f.state, f.attempt, coalesce(f.due_at, f.ended_at), f.enqueued_at, left(f.error, 20000), left(f.payload, 65537),
       (case when (select trunkline.base_type(trunkline.payload_type($1)) = 'bytea'::regtype) then octet_length(f.payload::bytea)
             else octet_length(f.payload) end)::bigint,
       left(jsonb_pretty(f.metadata), 65537), f.priority, f.key
from trunkline.find($1, $2) f
