create or replace function trunkline.{do_enqueue_}(payload anyelement) returns bigint language plpgsql as $f$
-- Enqueues one message without options, for trunkline.enqueue: inserts one row, and sends a
-- notification if a consumer sleeps. Returns null if a trigger refused the row; trunkline.enqueue
-- then tries again with enqueue_one, which fails with the reason. Every name includes its schema, so
-- that the function needs no setting of search_path, which would cost a tenth of the insert. Each
-- condition costs a fiftieth.
declare
    id pg_catalog.int8;
begin
    if {shortens} or (pg_catalog.pg_column_size(payload) operator(pg_catalog.<=) 67108868) is not true then
        perform trunkline.payload_bytes({literal}, pg_catalog.pg_column_size(payload)); -- fails, with a hint, if the payload is null or too large
        return trunkline.enqueue_one({literal}, payload, '0', null, 0, null, null, false, null); -- a cast would shorten the payload
    end if;
    insert into trunkline.{queue_} as q (size, payload) values (1, array[payload::{type}]) returning q.id into id;
    if trunkline.announced({channel}) then
        perform pg_catalog.pg_notify({channel}, '');
    end if;
    return id;
end $f$;
