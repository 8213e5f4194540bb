create or replace function trunkline.{do_batch_}(payloads {type}[], delay interval default '0', metadata jsonb[] default null,
        due timestamptz default null)
    returns setof bigint language plpgsql set search_path = pg_catalog, pg_temp as $f$
-- Fails: each message of a queue with keys needs a key. See do_keyed_.
begin
    perform trunkline.check_keys({literal}, null, cardinality(payloads));
end $f$;
