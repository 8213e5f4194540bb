create or replace function trunkline.floor(queue text, keep bool default true) returns timestamptz
    language plpgsql as $$
-- Returns the floor under this session's scans (see trunkline.clock). A setting of the session
-- stores the floor, and trunkline.look_floor updates it every 100 ms. The setting consists of: the
-- floor, the candidate, the transaction that has to end first, the time of the last look, and the
-- page at which the sweep for rows below the floor continues. Times are stored as epochs, because a
-- session may change how times are written. If keep is false, nothing is written to tables, so that
-- a long transaction gets no id. An id would hold back every floor.
--
-- Every take and lease in SQL calls this function. A SET clause and calls of trunkline.time_of
-- would double its cost, so every name includes its schema.
declare
    setting constant pg_catalog.text := pg_catalog.current_setting(
        'trunkline.floor_' operator(pg_catalog.||)
            pg_catalog.to_regclass(pg_catalog.format('trunkline.%I', 'queue_' operator(pg_catalog.||) queue))::pg_catalog.oid, true);
    known constant pg_catalog.int8[] := case when setting operator(pg_catalog.<>) '' then setting end;
    age constant pg_catalog.float8 :=
        pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000000 operator(pg_catalog.-) known[4];
begin
    if age operator(pg_catalog.>=) 0 and age operator(pg_catalog.<) 100000 then
        return case when known[1] operator(pg_catalog.>) '-9223372036854775808'::pg_catalog.int8
            then 'epoch'::pg_catalog.timestamptz operator(pg_catalog.+) (known[1] operator(pg_catalog.*) '1 us'::pg_catalog.interval)
            else '-infinity' end;
    end if;
    return trunkline.look_floor(queue, keep);
end $$;
