create or replace function trunkline.keep_place() returns trigger
    language plpgsql set search_path = pg_catalog, pg_temp as $$
-- The trigger function of a queue with keys. Its arguments are the first partition and the number of partitions. A
-- message's place in line is the time at which it is first due, and its key decides its partition. If a row names a
-- partition that does not exist, it comes from another server, or from a program that still uses the partitions from
-- before their number grew. Such a row gets the partition of its keys. If its keys belong to several partitions, the
-- row is refused, and so is a row in the partition of another key, as from a program that knows an earlier queue of
-- this name. Then the program has to read the partitions again, or call trunkline.enqueue_many.
declare
    first int := tg_argv[0];
    lanes int := tg_argv[1];
    wrong text[];
    is_placed bool;
begin
    new.place := coalesce(new.place, new.due_at);
    if cardinality(new.keys) is distinct from new.size or array_lower(new.keys, 1) <> 1 or array_ndims(new.keys) <> 1 then
        raise exception 'a row of % is not a batch: it has % messages, and keys for %, or these are not an array of one dimension, from 1 on', tg_table_name, new.size, coalesce(cardinality(new.keys), 0)
            using errcode = 'check_violation', hint = 'Enqueue through trunkline.enqueue or enqueue_many.';
    end if;
    if new.id % 1024 > 0 then
        -- This is a part of an existing row, or a message that is put back. Refusing it would lose
        -- it.
        if new.lane < first or new.lane >= first + lanes then
            new.lane := first + trunkline.lane_of(new.keys[1], lanes);
        end if;
        return new;
    end if;
    if new.size = 1 and octet_length(new.keys[1]) between 1 and 1024 and new.lane = first + trunkline.lane_of(new.keys[1], lanes) then
        return new; -- a row of one message, as at low traffic, needs no subquery
    end if;
    wrong := array(select k.key from unnest(new.keys) k(key) where (octet_length(k.key) between 1 and 1024) is not true limit 1);
    if wrong <> '{}' then
        raise exception 'a key of a row of % is empty, null or too long', tg_table_name
            using errcode = 'check_violation', hint = 'A key has 1 to 1,024 bytes. Enqueue through trunkline.enqueue or enqueue_many, which say which.';
    end if;
    -- Computes the same partition as trunkline.lane_of, without one call per key. If messages of one key were in
    -- several partitions, they would be handled at the same time.
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
                using errcode = 'TL002', hint = 'The partitions may have changed: call again. To insert rows by hand, call trunkline.enqueue_many instead, or pass lane -1.';
        end if;
        raise exception 'a row of % has keys of different partitions; the queue now has % partitions', tg_table_name, lanes
            using errcode = 'TL002', hint = 'The number of partitions has changed: call again. To insert rows by hand, call trunkline.enqueue_many instead.';
    end if;
    return new;
end $$;
