create or replace function trunkline.ack(queue text, id bigint, attempt int) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
-- Acknowledges a message, which deletes it. Fails with TL001 if the message is no longer leased.
--
-- Example:
--     select trunkline.ack('emails', id, attempt) from trunkline.lease('emails');
declare
    acked int := 0;
begin
    if exists (select from trunkline.queue q where q.name = queue and q.lanes = 0 and q.max_leased is null) then
        -- The usual case: the message is a row of its own. This costs three quarters of the general
        -- case.
        execute format('delete from trunkline.%I q where q.id = $1 and q.size = 1 and q.attempt = $2 and q.attempt > 0 and q.error is null
                        and q.due_at > clock_timestamp()', 'queue_' || queue) using id, attempt;
        get diagnostics acked = row_count;
    end if;
    if acked = 0 then
        perform trunkline.settle('ack', queue, array[id], array[attempt]);
    end if;
end $$;
