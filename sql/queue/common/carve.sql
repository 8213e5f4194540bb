create or replace function trunkline.{do_carve_}(ids bigint[], sizes int[], attempts int[], leased bool)
    returns void language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Splits rows that extend beyond an end of the given ranges, if the rows still belong to the
-- caller, so that the ranges consist of whole rows. A row lies within one block of 1,024 ids, and
-- extends beyond an end only if it begins before that end. So the function reads each block once,
-- no matter how many dead rows surround it, and merges rows and ends in order. Without a lease
-- (after a rollback), the function does not touch a row that a worker has leased.
--
-- If a row is locked, the caller with a lease pauses and looks again. It does not queue for the
-- lock: the session that splits the row commits soon, and the lock would then be on the first
-- piece, which a long transaction may already be ending. After a second the function does queue for
-- the lock, so that the server detects deadlocks.
#variable_conflict use_variable
declare
    r trunkline.{queue_}%rowtype;
    wide record;
    moved bool;
    waited float8 := 0;
    pause float8 := 0.0005;
begin
    loop
        moved := false;
        for wide in
            with edge as (
                select distinct e.at, d.attempt
                from unnest(ids, sizes, attempts) d(id, size, attempt), lateral (values (d.id), (d.id + d.size)) e(at)
                where e.at % 1024 <> 0
            ), mark as (
                select e.at, e.attempt, null::bigint[] as begun from edge e
                union all
                select q.id, null, array[q.id, q.size, q.attempt]
                from (select distinct e.at / 1024 * 1024 as id from edge e) block,
                     lateral (select q.id, q.size, q.attempt from trunkline.{queue_} q
                              where q.id >= block.id and q.id < block.id + 1024 and q.size > 1
                                and (not leased or q.error is null and q.due_at > clock_timestamp())) q
            ), met as (
                select m.at, m.attempt, max(m.begun) over (order by m.at, m.begun is not null rows unbounded preceding) as begun
                from mark m
            )
            select m.begun[1] as id, m.begun[2] as size, m.begun[3] as attempt, array_agg((m.at - m.begun[1])::int) as cuts
            from met m
            where m.attempt = m.begun[3] and m.at < m.begun[1] + m.begun[2]
            group by m.begun order by m.begun
        loop
            if leased and waited >= 1 then
                select * into r from trunkline.{queue_} q where q.id = wide.id for update;
            else
                select * into r from trunkline.{queue_} q where q.id = wide.id for update skip locked;
                continue when not found and not leased;
            end if;
            if not found or r.size <> wide.size then
                -- Another session has locked the row, or has split it in the meantime. Look again
                -- in a fresh snapshot, before the next row: sessions that carve lock rows in the
                -- order of their ids.
                if not found and exists (select from trunkline.{queue_} q where q.id = wide.id and q.size = wide.size) then
                    perform pg_sleep(pause);
                    waited := waited + pause;
                    pause := least(2 * pause, 0.02);
                end if;
                moved := true;
                exit;
            elsif r.attempt = wide.attempt and (not leased or r.error is null and r.due_at > clock_timestamp()) then
                perform trunkline.{do_split_}(r.id, wide.cuts);
            end if;
        end loop;
        exit when not moved;
    end loop;
end $f$;
