create or replace function trunkline.{do_cut_}(n int, floor timestamptz)
    returns void language plpgsql set search_path = pg_catalog, pg_temp as $f$
-- Fails: messages of a queue with keys are leased by partition.
begin
    perform trunkline.refuse_keys({literal});
end $f$;
