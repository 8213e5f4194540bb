create or replace function trunkline.{do_enqueue_}(payload anyelement) returns bigint language plpgsql as $f$
-- Enqueues one message without options, for trunkline.enqueue: inserts one row, and sends a
-- notification if a consumer sleeps. Every name includes its schema, so that the function needs no
-- setting of search_path, which would cost a tenth of the insert.
declare
    id pg_catalog.int8;
begin
    if (pg_catalog.pg_column_size(payload) operator(pg_catalog.<=) 67108868) is not true then
        perform trunkline.payload_bytes({literal}, pg_catalog.pg_column_size(payload)); -- fails, with a hint
    end if;
    if {shortens} then
        return trunkline.enqueue_one({literal}, payload, '0', null, 0, null, null, false, null); -- a cast would shorten the payload
    end if;
    insert into trunkline.{queue_} as q (size, payload) values (1, array[payload::{type}]) returning q.id into id;
    if id is null then
        perform trunkline.not_stored({literal}, 1, 0);
    end if;
    if trunkline.announced({channel}) then
        perform pg_catalog.pg_notify({channel}, '');
    end if;
    return id;
end $f$;
