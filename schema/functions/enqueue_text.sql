-- As above, for a payload written as text, which any driver can pass.
--
-- Example:
--     select trunkline.enqueue('emails', '{"to": "bob@example.org"}', delay => '10 minutes', metadata => '{"tenant": "acme"}');
create or replace function trunkline.enqueue(queue text, payload text, delay interval default '0', metadata jsonb default null) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    id bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('select trunkline.%I(array[$1::%s], $2, $3)', 'do_batch_' || queue, format_type(trunkline.payload_type(queue), -1))
        into id using payload, delay, case when metadata is not null then array[metadata] end;
    return id;
end $$;
