create or replace function trunkline.hold_retries(queue text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Holds back the other messages of a key until its failed messages are retried, so that none of them goes first. A
-- failed message that was rescheduled holds back no other, because its position is behind them. The caller must have
-- locked the queue's tables (see trunkline.lock_partitions).
begin
    execute format('select trunkline.%I(array_agg(q.id), array_agg(q.size)) from trunkline.%I q '
                   'where q.error is not null and q.due_at > clock_timestamp() and q.place <= clock_timestamp() having count(*) > 0', 'do_hold_' || queue, 'queue_' || queue);
end $$;
