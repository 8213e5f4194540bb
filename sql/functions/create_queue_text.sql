create or replace function trunkline.create_queue(
    queue text, payload text, max_attempts int default 10,
    lease interval default '30 seconds', max_batch int default 1024, priorities int default 1, aging interval default '1 minute',
    uniqueness bool default false, partitions int default 0, per_key int default 1
) returns void
    language plpgsql as $$
-- Like the other variant, for the name of a type that is written as text. A type with a modifier, such as numeric(10,2),
-- is refused, because a queue would lose the modifier: create a domain over it. The name of a type is found through the
-- session's search_path, so the function sets none.
--
-- Example:
--     create domain price as numeric(10,2);
--     select trunkline.create_queue('prices', 'price');
begin
    -- A quoted name may contain parentheses.
    if pg_catalog.regexp_replace(payload, '"([^"]|"")*"', '', 'g') operator(pg_catalog.~) '[(]' then
        raise exception 'queue % would lose the modifier of its payload type %', pg_catalog.quote_literal(queue), payload
            using errcode = 'invalid_parameter_value',
                  hint = pg_catalog.format('Create a domain and pass its name: create domain my_payload as %s', payload);
    end if;
    perform trunkline.create_queue(queue, payload::pg_catalog.regtype, max_attempts, lease, max_batch, priorities, aging, uniqueness, partitions, per_key);
end $$;
