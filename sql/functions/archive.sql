create or replace function trunkline.archive(queue text, id bigint, attempt int) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Acknowledges a message and keeps it in the queue's archive. Errs with TL001 where it is not leased any more.
--
-- Example:
--     select trunkline.archive('emails', id, attempt) from trunkline.lease('emails');
begin
    perform trunkline.settle('archive', queue, array[id], array[attempt]);
end $$;
