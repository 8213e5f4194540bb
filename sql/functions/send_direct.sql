create or replace function trunkline.send_direct(queue text, payload anyelement, metadata jsonb default null) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Sends a message to one consumer that waits for direct messages (receive_direct in Rust and Python, or `trunkline
-- dequeue --direct`). The notification that wakes the consumer at the commit contains the message. Nothing is stored,
-- so the message is lost if that consumer crashes. If no consumer waits, if the message takes more than about 5,900 bytes,
-- or if the queue is paused or has limits, the message is enqueued. Returns its id. Needs a consumer's rights in
-- addition to a producer's.
--
-- metadata: an object of names and string values that accompanies the payload.
--
-- Example:
--     select trunkline.send_direct('emails', jsonb_build_object('to', 'ada@example.org'));
begin
    return trunkline.send_direct_one(queue, payload, metadata);
end $$;
