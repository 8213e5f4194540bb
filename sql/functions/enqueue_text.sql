create or replace function trunkline.enqueue(queue text, payload text, delay interval default '0', metadata jsonb default null,
        priority int default 0, unique_key text default null, unique_for interval default null, replace bool default false,
        key text default null) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Like the variant for the payload's own type, for a payload written as text, which any driver can pass.
--
-- Example:
--     select trunkline.enqueue('emails', '{"to": "bob@example.org"}', delay => '10 minutes', metadata => '{"tenant": "acme"}');
declare
    id bigint;
begin
    if unique_key is not null then
        return (select u.id from trunkline.enqueue_unique(queue, payload, unique_key, unique_for, replace, delay, metadata, priority) u);
    end if;
    perform trunkline.check_queue(queue);
    if key is not null then
        perform trunkline.check_keys(queue, array[key], 1);
        execute format('select trunkline.%I(array[$1::%s], array[$2], $3, $4)', 'do_keyed_' || queue, format_type(trunkline.payload_type(queue), -1))
            into id using payload, key, delay, case when metadata is not null then array[metadata] end;
        return id;
    end if;
    execute format('select trunkline.%I(array[$1::%s], $2, $3%s)', 'do_batch_' || queue, format_type(trunkline.payload_type(queue), -1),
                   trunkline.check_priority(queue, priority))
        into id using payload, delay, case when metadata is not null then array[metadata] end;
    return id;
end $$;
