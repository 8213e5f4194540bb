-- Enqueues a message of the payload's own type, in the caller's transaction, and returns its id. Consumers that wait are
-- woken at the commit.
--
-- delay: how long until it is due. metadata: an object of names and texts that travels beside the payload.
--
-- Example:
--     select trunkline.enqueue('emails', jsonb_build_object('to', 'ada@example.org'));
create or replace function trunkline.enqueue(queue text, payload anyelement, delay interval default '0', metadata jsonb default null) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    id bigint;
begin
    perform trunkline.check_queue(queue);
    execute format('select trunkline.%I(array[$1::%s], $2, $3)', 'do_batch_' || queue, format_type(trunkline.payload_type(queue), -1))
        into id using payload, delay, case when metadata is not null then array[metadata] end;
    return id;
end $$;
