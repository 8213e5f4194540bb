create or replace function trunkline.repair_sequence(queue text) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
-- Sets the sequence of a queue above every id in the queue, for a database whose sequences fell behind its tables:
-- after a switch to a logical replica, or a restore of data alone. Returns the next id. Ids in the upper half of the
-- number range are ignored: the sequence never gave them out, so they were written manually. If the
-- sequence continued above them, it could run out of numbers, and nothing could be enqueued.
--
-- Example:
--     select trunkline.repair_sequence('emails');
declare
    half constant bigint := 4611686018427387904;
    next_id bigint;
begin
    perform trunkline.check_queue(queue);
    execute format($q$
        select greatest((select i.last_value + case when i.is_called then 1024 else 0 end from trunkline.%1$I i where i.last_value < $2),
                        ((select q.id from trunkline.%2$I q where q.id < $2 order by q.id desc limit 1) / 1024 + 1) * 1024,
                        ((select d.id from trunkline.%3$I d where d.id < $2 order by d.id desc limit 1) / 1024 + 1) * 1024,
                        ((select a.id from trunkline.%4$I a where a.id < $2 order by a.id desc limit 1) / 1024 + 1) * 1024,
                        (select r.next_id from trunkline.dropped r where r.queue = $1 and r.next_id < $2), 1024) $q$,
        'id_' || queue, 'queue_' || queue, 'dead_' || queue, 'archive_' || queue) into next_id using queue, half;
    next_id := (next_id + 1023) / 1024 * 1024; -- rows begin at multiples of 1,024, whatever was set manually
    perform setval(format('trunkline.%I', 'id_' || queue), next_id, false);
    return next_id;
end $$;
