create or replace function trunkline.cancel(queue text, ids bigint[]) returns setof bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- Deletes messages permanently, in the caller's transaction, and returns the ids of the deleted messages. The other
-- messages of their rows stay as they were. Dead and archived messages are not touched (see trunkline.discard and
-- trunkline.prune).
--
-- A waiting message is never delivered. If a message is leased, its lease ends now: its handler may already have done
-- its work, and continues until it notices, but every attempt to end or renew that lease fails with TL001. Skips
-- messages that another transaction keeps locked for more than a tenth of a second, as the transaction of an
-- exactly-once consumer does. Commit immediately: until the commit, other sessions may have to wait, and the rest of a
-- row that was split is invisible to consumers.
--
-- Example:
--     select * from trunkline.cancel('emails', array[2048]);
begin
    return query select trunkline.change('cancel', queue, ids);
end $$;
