create or replace function trunkline.reschedule(queue text, ids bigint[], due timestamptz) returns setof bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Makes messages that wait due at another time, sooner or later; returns the ids of those. A time that has passed means
-- now; what is due already keeps its place then. Leased, dead and archived messages are not touched. Consumers that wait
-- are woken at the commit. Passes over what another transaction has locked, and is to be committed at once, as trunkline.cancel.
--
-- due: at most 36500 days from now. A message that failed keeps its error and its attempts.
--
-- Example:
--     select * from trunkline.reschedule('emails', array[3170, 3171], now() + interval '1 hour');
begin
    return query select trunkline.change('reschedule', queue, ids, due);
    perform pg_notify('trunkline.' || queue, '');
end $$;
