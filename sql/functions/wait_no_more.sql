create or replace function trunkline.wait_no_more(consumer text) returns setof text
    language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
-- Removes a consumer from the list of waiting consumers, after any session that is currently handing a message over to
-- it. Returns the consumer's name, or nothing if it was no longer listed: then a message is on its way. Runs with the
-- owner's right to delete. The caller has to know the name, which is random and readable only by consumers of the same
-- queue. The name is compared exactly, even if the caller's collation considers other names equal.
#variable_conflict use_variable
begin
    return query delete from trunkline.waiting w where w.consumer = consumer collate "default" returning w.consumer;
end $$;
