create or replace function trunkline.check_unique(queue text, messages int, metadata jsonb[], keys text[], unique_for interval) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
-- Fails, with a hint, unless these messages can be enqueued with unique keys. Each message needs an entry in keys,
-- which may be null.
#variable_conflict use_variable
declare
    wrong text := (select k from unnest(keys) k where k = '' or octet_length(k) > 1024 limit 1);
begin
    perform trunkline.check_metadata(m) from unnest(metadata) m;
    if not exists (select from trunkline.queue q where q.name = queue and q.uniqueness) then
        raise exception 'queue % keeps no unique keys', quote_literal(queue) using errcode = 'invalid_parameter_value',
            hint = 'Create one that does: trunkline.create_queue(..., uniqueness => true).';
    elsif messages is null then
        raise exception 'the payloads of queue % are null', quote_literal(queue) using errcode = 'null_value_not_allowed',
            hint = 'Pass an array; an empty one enqueues nothing.';
    elsif cardinality(keys) is distinct from messages or cardinality(metadata) <> messages then
        raise exception 'the call has % payloads, % unique keys, and metadata for %', messages, coalesce(cardinality(keys), 0), cardinality(metadata)
            using errcode = 'invalid_parameter_value', hint = 'Pass one for each payload, or null for a payload without one.';
    elsif wrong is not null then
        raise exception 'a unique key of % bytes is out of bounds', octet_length(wrong) using errcode = 'invalid_parameter_value',
            hint = 'A key has 1 to 1,024 bytes. Hash longer keys.';
    elsif unique_for <= '0' or unique_for > '36500 days' then
        raise exception 'a unique key cannot be kept for %', unique_for using errcode = 'invalid_parameter_value',
            hint = 'It is kept for more than zero and at most 36500 days; null keeps it until the message has ended.';
    end if;
end $$;
