-- Enqueues messages of the payload's own type together, up to the queue's max_batch in a row, and returns their ids in
-- order. An empty array enqueues nothing. metadata: one for each payload, null for those without.
--
-- Example:
--     select * from trunkline.enqueue_many(
--         'emails', array(select jsonb_build_object('to', n || '@example.org') from generate_series(1, 100) n));
create or replace function trunkline.enqueue_many(queue text, payloads anyarray, delay interval default '0', metadata jsonb[] default null)
    returns setof bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform trunkline.check_queue(queue);
    if array_ndims(payloads) > 1 then
        raise exception 'the payloads are an array of % dimensions', array_ndims(payloads)
            using errcode = 'array_subscript_error',
                  hint = 'Pass one dimension. Payloads that are arrays themselves are passed as texts: array[''{1,2}'', ''{3}''].';
    end if;
    return query execute format('select * from trunkline.%I($1::%s[], $2, $3)', 'do_batch_' || queue, format_type(trunkline.payload_type(queue), -1))
        using payloads, delay, metadata;
end $$;
