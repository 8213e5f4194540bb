create or replace function trunkline.{do_enqueue_}(payload anyelement) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $f$
-- Refuses a message without a key, for trunkline.enqueue.
begin
    perform trunkline.check_keys({literal}, null, 1);
end $f$;
