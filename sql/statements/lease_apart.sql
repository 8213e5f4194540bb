-- As lease, for callers that run what they get together: a message whose lease ran out comes alone, for it may kill its neighbours.
select id, attempt, size, enqueued_at, payload, metadata, ran_out, released from trunkline.{do_lease_}($1, $2 operator(pg_catalog.*) interval '1 second', $3, $4, true)
