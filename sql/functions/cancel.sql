create or replace function trunkline.cancel(queue text, ids bigint[]) returns setof bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Deletes messages for good, in the caller's transaction; returns the ids that are gone. The other messages of their rows
-- stay as they were. What is dead or archived is not touched (see trunkline.discard and prune).
--
-- A message that waits is never delivered any more. The lease of one that is leased ends now: its handler may have done its
-- work, and goes on until it notices, but whatever ends or renews that lease then is refused with TL001. Passes over what
-- another transaction has locked for longer than a tenth of a second, as in the transaction of an exactly-once consumer. Commit at
-- once: others wait, and the rest of a row that is cut is hidden, until the commit.
--
-- Example:
--     select * from trunkline.cancel('emails', array[2048]);
begin
    return query select trunkline.change('cancel', queue, ids);
end $$;
