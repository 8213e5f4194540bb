create or replace function trunkline.reschedule(queue text, ids bigint[], due timestamptz) returns setof bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Gives waiting messages another due time, earlier or later; returns the ids of the messages that it changed. A time in
-- the past means now; a message that is already due keeps its place then. A message that failed keeps its error and its
-- attempts. Leased, dead and archived messages are not touched. Waiting consumers are woken at the commit. Like trunkline.cancel, the function skips messages that another
-- transaction has locked, and needs an immediate commit.
--
-- due: at most 36500 days from now.
--
-- Example:
--     select * from trunkline.reschedule('emails', array[3170, 3171], now() + interval '1 hour');
begin
    return query select trunkline.change('reschedule', queue, ids, due);
    perform pg_notify('trunkline.' || queue, '') where trunkline.announced('trunkline.' || queue);
end $$;
