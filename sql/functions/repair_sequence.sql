create or replace function trunkline.repair_sequence(queue text) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
-- Sets the sequence of a queue above every id in the queue, for a database whose sequences fell behind its tables:
-- after a switch to a logical replica, or a restore of data alone. Returns the next id. Ids of messages that are gone
-- are not known to the function, so new messages may get them; docs/operations.md (Backup) has a statement that skips
-- them. Ids in the upper half of the number range are ignored: the sequence never gave them out, so they were written
-- manually. If the sequence continued above them, it could run out of numbers, and nothing could be enqueued.
--
-- Producers can call nextval at the same time, so a healthy sequence is not touched, and one that is a little behind is
-- advanced by nextval.
--
-- Example:
--     select trunkline.repair_sequence('emails');
declare
    half constant bigint := 4611686018427387904;
    sequence regclass;
    now_next bigint;
    next_id bigint;
begin
    perform trunkline.check_queue(queue);
    sequence := format('trunkline.%I', 'id_' || queue);
    execute format($q$
        select s.now_next, greatest(case when s.now_next < $2 then s.now_next end,
                        ((select q.id from trunkline.%2$I q where q.id < $2 order by q.id desc limit 1) / 1024 + 1) * 1024,
                        ((select d.id from trunkline.%3$I d where d.id < $2 order by d.id desc limit 1) / 1024 + 1) * 1024,
                        ((select a.id from trunkline.%4$I a where a.id < $2 order by a.id desc limit 1) / 1024 + 1) * 1024,
                        (select r.next_id from trunkline.dropped r where r.queue = $1 and r.next_id < $2), 1024)
        from (select least(i.last_value, 9223372036854774783) + case when i.is_called then 1024 else 0 end as now_next from trunkline.%1$I i) s $q$,
        'id_' || queue, 'queue_' || queue, 'dead_' || queue, 'archive_' || queue) into now_next, next_id using queue, half;
    next_id := (next_id + 1023) / 1024 * 1024; -- rows begin at multiples of 1,024, whatever was set manually
    if now_next % 1024 = 0 and next_id - now_next between 1 and 1048576 then
        perform nextval(sequence) from generate_series(1, (next_id - now_next) / 1024);
    elsif now_next <> next_id then
        -- One session at a time sets the sequence, and only if no other session has done so.
        perform from trunkline.queue q where q.name = queue for no key update;
        execute format('select least(i.last_value, 9223372036854774783) + case when i.is_called then 1024 else 0 end from trunkline.%I i', 'id_' || queue)
        into now_next;
        if now_next not between next_id and half then
            perform setval(sequence, next_id, false);
        end if;
    end if;
    return next_id;
end $$;
