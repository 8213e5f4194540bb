-- Makes a message a dead letter at once, however many attempts are left. Errs with TL001 where it is not leased any more.
create or replace function trunkline.bury(queue text, id bigint, attempt int, reason text default '') returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform trunkline.settle('bury', queue, array[id], array[attempt], null, reason);
end $$;
