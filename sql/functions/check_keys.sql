create or replace function trunkline.check_keys(queue text, keys text[], messages int) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Fails, with a hint, unless the keys fit the queue: a queue with keys needs a valid key for each payload, any other
-- queue needs null.
declare
    keyed bool := (select q.lanes > 0 from trunkline.queue q where q.name = queue);
begin
    if keys is null and keyed then
        raise exception 'queue % needs a key for each message', quote_literal(queue)
            using errcode = 'null_value_not_allowed', hint = 'Pass one: trunkline.enqueue(..., key => ''customer 17'').';
    elsif keys is not null and not keyed then
        raise exception 'queue % has no keys', quote_literal(queue)
            using errcode = 'invalid_parameter_value', hint = 'Create one with trunkline.create_queue(..., partitions => 64), or pass no key.';
    elsif cardinality(keys) <> messages then
        raise exception 'the call has % payloads, but % keys', messages, cardinality(keys)
            using errcode = 'invalid_parameter_value', hint = 'Pass a key for each payload.';
    elsif exists (select from unnest(keys) k where k is null or k = '' or octet_length(k) > 1024) then
        raise exception 'a key of queue % is empty, null or too long', quote_literal(queue)
            using errcode = 'invalid_parameter_value', hint = 'A key has 1 to 1,024 bytes.';
    end if;
end $$;
