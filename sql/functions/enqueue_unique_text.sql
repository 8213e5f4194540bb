create or replace function trunkline.enqueue_unique(queue text, payload text, unique_key text, unique_for interval default null,
        replace bool default false, delay interval default '0', metadata jsonb default null, priority int default 0,
        out id bigint, out outcome text)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Like the variant for a value of the queue's type, for a payload written as text.
--
-- Example:
--     select id, outcome from trunkline.enqueue_unique('reports', '{"of": "globex"}', 'globex');
--     select id, outcome from trunkline.enqueue_unique('reports', '{"of": "globex, in full"}', 'globex', replace => true, delay => '10 seconds');
begin
    perform trunkline.check_queue(queue);
    perform trunkline.check_unique_key(unique_key), trunkline.check_priority(queue, priority), trunkline.check_unique(queue, 1, array[metadata], array[unique_key], unique_for);
    execute format('select u.id, (array[''new'', ''duplicate'', ''replaced''])[u.outcome + 1]
                    from trunkline.%I(%s, array[$2], array[$3], array[$4], array[$5], array[$6], array[$7]) u',
                   'do_unique_' || queue, trunkline.converted(queue, '$1', false, array[payload]))
        into id, outcome
        using payload, trunkline.due_of(delay), metadata, priority, unique_key, extract(epoch from unique_for)::float8, coalesce(replace, false);
end $$;
