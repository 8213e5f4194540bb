-- As above, for payloads written as texts.
--
-- Example:
--     select * from trunkline.enqueue_many('emails', array['{"to": "eve@example.org"}', '{"to": "dan@example.org"}']);
create or replace function trunkline.enqueue_many(queue text, payloads text[], delay interval default '0', metadata jsonb[] default null)
    returns setof bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform trunkline.check_queue(queue);
    if array_ndims(payloads) > 1 then
        raise exception 'the payloads are an array of % dimensions', array_ndims(payloads)
            using errcode = 'array_subscript_error', hint = 'Pass one dimension: a text for each payload.';
    end if;
    return query execute format('select * from trunkline.%I($1::%s[], $2, $3)', 'do_batch_' || queue, format_type(trunkline.payload_type(queue), -1))
        using payloads, delay, metadata;
end $$;
