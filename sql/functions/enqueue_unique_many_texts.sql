create or replace function trunkline.enqueue_unique_many(queue text, payloads text[], unique_keys text[], unique_for interval default null,
        replace bool default false, delay interval default '0', metadata jsonb[] default null, priority int default 0)
    returns table (id bigint, outcome text)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- With payloads text[]: each payload is written as text, and converted to the queue's type.
--
-- Example:
--     select id, outcome from trunkline.enqueue_unique_many('reports', array['{"of": "acme"}', '{"of": "globex"}'], array['acme', null]);
begin
    perform trunkline.check_queue(queue);
    if array_ndims(payloads) > 1 then
        raise exception 'the payloads must be an array of one dimension, not of %', array_ndims(payloads)
            using errcode = 'array_subscript_error',
                  hint = 'Pass one text for each payload.';
    end if;
    perform trunkline.check_priority(queue, priority), trunkline.check_unique(queue, cardinality(payloads), metadata, unique_keys, unique_for);
    return query execute format(
        'select u.id, (array[''new'', ''duplicate'', ''replaced''])[u.outcome + 1]
         from (select array[cardinality($1)] as n) a,
              trunkline.%I(%s, array_fill($2, a.n), $3, array_fill($4, a.n), $5, array_fill($6, a.n), array_fill($7, a.n)) u',
        'do_unique_' || queue, trunkline.converted(queue, '$1', true, payloads))
        using payloads, trunkline.due_of(delay), metadata, priority, unique_keys, extract(epoch from unique_for)::float8, coalesce(replace, false);
end $$;
