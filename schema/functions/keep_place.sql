-- For the trigger of a queue with keys: a message has its place in line by the time when it is due first, and its lane by its key.
create or replace function trunkline.keep_place() returns trigger
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    new.place := coalesce(new.place, new.due_at);
    if cardinality(new.keys) is distinct from new.size or array_lower(new.keys, 1) <> 1 then
        raise exception 'a row of % is no batch: it has % messages, and keys for %', tg_table_name, new.size, coalesce(cardinality(new.keys), 0)
            using errcode = 'check_violation', hint = 'Enqueue through trunkline.enqueue or enqueue_many.';
    end if;
    return new;
end $$;
