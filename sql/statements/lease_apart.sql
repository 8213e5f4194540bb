-- Like lease, for callers that run the messages of one lease together: a message whose lease expired is leased alone, because it may crash
-- their process.
select id, attempt, size, enqueued_at, payload, metadata, ran_out, released from trunkline.{do_lease_}($1, $2 operator(pg_catalog.*) interval '1 second', $3, $4, true)
