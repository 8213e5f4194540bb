create or replace function trunkline.release(queue text, id bigint, attempt int) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Gives a message back: due again at once, and the attempt is not charged. Errs with TL001 where it is not leased any more.
--
-- Example:
--     select trunkline.release('emails', id, attempt) from trunkline.lease('emails');
begin
    perform trunkline.settle('release', queue, array[id], array[attempt]);
    perform pg_notify('trunkline.' || queue, '');
end $$;
