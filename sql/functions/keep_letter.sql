create or replace function trunkline.keep_letter() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
-- The trigger function of a queue's dead letters and archive. If a message's id already exists in
-- the table, the message gets a new id; an error would prevent every lease of the queue from
-- ending. Such an id exists only if the sequence fell behind the ids that it had given out, so the
-- function repairs the sequence. An update of an id also assigns a new id, and so does an insert of
-- a negative id: do_archive_ looks for existing ids itself. The function runs with the owner's
-- rights, because roles that may bury messages have no right to the sequence. It fails as the
-- trigger of any other table, whose types and casts would also run with the owner's rights.
declare
    queue text := substr(tg_table_name, strpos(tg_table_name, '_') + 1);
    is_there bool := tg_op = 'UPDATE' or new.id < 0;
begin
    if tg_table_schema <> rtrim('trunkline.', '.') then
        raise exception '% is not a table of a queue', quote_ident(tg_table_name) using errcode = 'insufficient_privilege',
            hint = 'Drop its trigger: trunkline.keep_letter is for the dead letters and the archive of a queue.';
    end if;
    if not is_there then
        execute format('select exists (select from trunkline.%I o where o.id = $1)', tg_table_name) into is_there using new.id;
    end if;
    if is_there then
        perform trunkline.repair_sequence(queue);
        new.id := nextval(format('trunkline.%I', 'id_' || queue));
    end if;
    return new;
end $$;
