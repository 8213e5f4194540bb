create or replace function trunkline.purge(queue text) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
-- Deletes all waiting and leased messages of a queue; its dead letters and archive stay. Returns how many messages were
-- deleted. Waits for every transaction that has locked a message, such as that of an exactly-once consumer, for as long
-- as lock_timeout permits.
--
-- Example:
--     select trunkline.purge('emails');
declare
    count bigint := 0;
    top bigint;
    last bigint;
    tids tid[];
    part bigint;
    waiting text := ''; -- the first pass waits for locked rows
    is_clean bool;
begin
    perform trunkline.check_queue(queue);
    -- Deletes the messages that are in the queue now. top is the last id of the newest row's block of 1,024, so it
    -- includes parts that are split off that row. Rows that are inserted later may stay.
    execute format('select max(q.id) / 1024 * 1024 + 1023 from trunkline.%I q', 'queue_' || queue) into top;
    -- Locks rows in the order of their ids, as a worker that ends leases does. Deletes up to 10,000 rows at a time by
    -- their ctids, which takes linear time whatever the statistics are. A consumer may split a row while the first pass
    -- waits for its lock, so further passes follow until one finds no row. They skip locked rows: the call holds locks
    -- of rows with higher ids, so a wait could deadlock.
    while is_clean is not true loop
        is_clean := true;
        last := -9223372036854775808;
        loop
            execute format('select array_agg(h.ctid), max(h.id) from (select q.ctid, q.id from trunkline.%I q where q.id > $1 and q.id <= $2
                                                                     order by q.id limit 10000 for update %s) h',
                           'queue_' || queue, waiting)
                into tids, last using last, top;
            exit when tids is null;
            execute format('with gone as (delete from trunkline.%I q where q.ctid = any ($1) returning q.size) select sum(g.size) from gone g',
                           'queue_' || queue) into part using tids;
            count := count + coalesce(part, 0);
            is_clean := is_clean and part is null;
        end loop;
        waiting := 'skip locked';
    end loop;
    if (select q.lanes > 0 from trunkline.queue q where q.name = queue) then
        -- Keys no longer wait for failed messages that were purged. Their backlogs stay, because messages may have
        -- entered them since; the next lease removes an empty backlog.
        execute format($q$
            update trunkline.%1$I l set until = coalesce((
                select max(q.due_at) from trunkline.%2$I q
                where q.lane = l.lane and q.line = l.key and q.place <= clock_timestamp() and q.error is not null
                  and q.due_at > clock_timestamp()), '-infinity')
            from (select w.lane, w.key from trunkline.%1$I w where w.until > '-infinity' order by w.lane, w.key for update) w
            where l.lane = w.lane and l.key = w.key $q$, 'line_' || queue, 'queue_' || queue);
    end if;
    return count;
end $$;
