create or replace function trunkline.ack(queue text, id bigint, attempt int) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Acknowledges a message: it is done and gone. Errs with TL001 where it is not leased any more.
--
-- Example:
--     select trunkline.ack('emails', id, attempt) from trunkline.lease('emails');
begin
    perform trunkline.settle('ack', queue, array[id], array[attempt]);
end $$;
