create or replace function trunkline.keep_place() returns trigger
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- For the trigger of a queue with keys, whose arguments are the first of its lanes and their number: a message has its place in line by the time when it is due
-- first, and its lane by its key. A row for another lane is from a program that has the lanes of before there were more, or of another server: it gets the
-- lane of its keys, or, where they have several, is refused. Then the program that brought it has to ask for the lanes again, or to call trunkline.enqueue_many.
declare
    first int := tg_argv[0];
    lanes int := tg_argv[1];
    wrong text[];
    is_placed bool;
begin
    new.place := coalesce(new.place, new.due_at);
    if cardinality(new.keys) is distinct from new.size or array_lower(new.keys, 1) <> 1 or array_ndims(new.keys) <> 1 then
        raise exception 'a row of % is no batch: it has % messages, and keys for %, or these are no array of one dimension, from 1 on', tg_table_name, new.size, coalesce(cardinality(new.keys), 0)
            using errcode = 'check_violation', hint = 'Enqueue through trunkline.enqueue or enqueue_many.';
    end if;
    if new.id % 1024 > 0 then
        -- A part of a row that is there, or a message that comes back: a refusal would lose it.
        if new.lane < first or new.lane >= first + lanes then
            new.lane := first + trunkline.lane_of(new.keys[1], lanes);
        end if;
        return new;
    end if;
    if new.size = 1 and octet_length(new.keys[1]) between 1 and 1024 and new.lane = first + trunkline.lane_of(new.keys[1], lanes) then
        return new; -- what is usual where messages are few, without a subquery
    end if;
    wrong := array(select k.key from unnest(new.keys) k(key) where (octet_length(k.key) between 1 and 1024) is not true limit 1);
    if wrong <> '{}' then
        raise exception 'a key of a row of % is empty, null or too long', tg_table_name
            using errcode = 'check_violation', hint = 'A key has 1 to 1,024 bytes. Enqueue through trunkline.enqueue or enqueue_many, which say which.';
    end if;
    -- As trunkline.lane_of, without a call for each key. Messages of one key in several lanes would be handled at the same time.
    if new.lane < first or new.lane >= first + lanes then
        new.lane := first + trunkline.lane_of(new.keys[1], lanes);
        is_placed := true;
    end if;
    if exists (
        select from (select distinct u.key from unnest(new.keys) u(key)) k, lateral (select sha256(convert_to(k.key, 'UTF8')) as bytes offset 0) h
        where first + ((get_byte(h.bytes, 0)::bigint << 24) + (get_byte(h.bytes, 1) << 16) + (get_byte(h.bytes, 2) << 8) + get_byte(h.bytes, 3)) % lanes
              <> new.lane)
    then
        if is_placed is null then
            raise exception 'a row of % is in the partition of another key', tg_table_name
                using errcode = 'check_violation', hint = 'Enqueue through trunkline.enqueue or enqueue_many; a row by hand gets its partition from its key with lane -1.';
        end if;
        raise exception 'a row of % has keys of several partitions: there are % now', tg_table_name, lanes
            using errcode = 'TL002', hint = 'The queue got more partitions meanwhile: call again. To insert rows by hand, call trunkline.enqueue_many instead.';
    end if;
    return new;
end $$;
