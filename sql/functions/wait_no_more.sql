create or replace function trunkline.wait_no_more(consumer text) returns setof text
    language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
-- Takes a consumer off the list of those that wait, after the session that is handing a message over to it. Returns its name, or
-- nothing where it was not listed any more: then a message is on its way. With the owner's right to delete, for a caller that has the name, which is drawn at random
-- and which the consumers of its queue alone can read. That name itself, whatever the caller's collation takes for the same.
#variable_conflict use_variable
begin
    return query delete from trunkline.waiting w where w.consumer = consumer collate "default" returning w.consumer;
end $$;
