create or replace function trunkline.{do_lease_}(
        n int, lease interval default null, floor timestamptz default '-infinity', rows int default 1, apart bool default false)
    returns table (id bigint, attempt int, size int, enqueued_at timestamptz, due_at timestamptz, payload {type}[], metadata jsonb[],
                   ran_out bool, released int)
    language plpgsql set search_path = pg_catalog, pg_temp as $f$
-- Fails: messages of a queue with keys are leased by partition.
begin
    perform trunkline.refuse_keys({literal});
end $f$;
