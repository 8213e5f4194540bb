create or replace function trunkline.send_direct_one(queue text, payload anyelement, metadata jsonb) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Sends or enqueues a message, for both forms of trunkline.send_direct.
declare
    element bytea;
    texts text[] := case when pg_typeof(payload) = 'text'::regtype then array[payload::text] end;
    id bigint;
begin
    perform trunkline.check_queue(queue);
    if payload is not null then
        -- An array in the binary format: a header of 20 bytes, then the length of its element and the element.
        execute format('select substr(array_send(%s), 25)', trunkline.converted(queue, '$1', false, texts)) into element using payload;
        id := trunkline.send_element(queue, element, metadata);
    end if;
    return coalesce(id, trunkline.enqueue_one(queue, payload, '0', metadata, 0, null, null, false, null));
end $$;
