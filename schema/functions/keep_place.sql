-- For the trigger of a queue with keys, which is told the first of its lanes and how many they are: a message has its place in line by the time when it is due
-- first, and its lane by its key. A row for another lane is from somebody who knows the lanes of before there were more, or of another server: it gets the
-- lane of its keys, or, where they have several, is refused. Then whoever brought it has to ask for the lanes anew, or to call trunkline.enqueue_many.
create or replace function trunkline.keep_place() returns trigger
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    first int := tg_argv[0];
    lanes int := tg_argv[1];
    others int;
begin
    new.place := coalesce(new.place, new.due_at);
    if cardinality(new.keys) is distinct from new.size or array_lower(new.keys, 1) <> 1 then
        raise exception 'a row of % is no batch: it has % messages, and keys for %', tg_table_name, new.size, coalesce(cardinality(new.keys), 0)
            using errcode = 'check_violation', hint = 'Enqueue through trunkline.enqueue or enqueue_many.';
    end if;
    if new.lane >= first and new.lane < first + lanes then
        return new;
    end if;
    new.lane := first + trunkline.lane_of(new.keys[1], lanes);
    others := (select count(*) from unnest(new.keys) k(key) where first + trunkline.lane_of(k.key, lanes) <> new.lane);
    if others > 0 then
        raise exception 'a row of % has keys of several lanes: there are % now', tg_table_name, lanes
            using errcode = 'TL002', hint = 'The queue got more lanes meanwhile: call again. Whoever inserts rows by hand calls trunkline.enqueue_many instead.';
    end if;
    return new;
end $$;
