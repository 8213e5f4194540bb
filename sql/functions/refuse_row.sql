create or replace function trunkline.refuse_row() returns trigger
    language plpgsql as $$
-- The trigger function of every queue's table: it refuses a row that no consumer could read. It
-- accepts a row that was split or put back without changes. Every name includes its schema, so that
-- the function needs no setting of search_path: the function runs once per insert, and the setting
-- alone would cost as much as the check. The first check needs few steps for a row of one message,
-- because no other messages share the cost of its insert. A composite payload with a null field, and
-- an array of two dimensions or with another lower bound, fail `is not null` and reach the second
-- check.
begin
    if new.size operator(pg_catalog.=) 1 and pg_catalog.cardinality(new.payload) operator(pg_catalog.=) 1
       and new.payload[1] is not null and new.metadata is null then
        return new;
    end if;
    if new.size operator(pg_catalog.>=) 1 and new.size operator(pg_catalog.<=) 1024
       and (new.error is not null
            or pg_catalog.array_ndims(new.payload) operator(pg_catalog.=) 1
               and pg_catalog.array_lower(new.payload, 1) operator(pg_catalog.=) 1
               and pg_catalog.cardinality(new.payload) operator(pg_catalog.=) new.size
               and pg_catalog.num_nulls(variadic new.payload) operator(pg_catalog.=) 0
               and (new.metadata is null
                    or pg_catalog.array_ndims(new.metadata) operator(pg_catalog.=) 1
                       and pg_catalog.array_lower(new.metadata, 1) operator(pg_catalog.=) 1
                       and pg_catalog.cardinality(new.metadata) operator(pg_catalog.<=) new.size)) then
        return new;
    end if;
    raise exception 'a row of % is not a batch: its size is not its number of payloads, or a payload is null', tg_table_name
        using errcode = 'check_violation',
              hint = 'Enqueue through trunkline.enqueue or enqueue_many, or insert an array of one dimension, from 1 on, and its length (1 to 1,024) as size.';
end $$;
