create or replace function trunkline.{do_take_}(
        n int, floor timestamptz default '-infinity', rows int default 1, cut bool default true, keep bool default false)
    returns table (id bigint, attempt int, size int, enqueued_at timestamptz, payload {type}[], metadata jsonb[], released int, error text, own jsonb)
    language plpgsql set search_path = pg_catalog, pg_temp as $f$
-- Fails: messages of a queue with keys are leased by partition.
begin
    perform trunkline.refuse_keys({literal});
end $f$;
