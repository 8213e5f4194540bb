-- For the trigger of every queue's table: a row that no consumer could read never gets in. One that was split or put back is
-- taken as it is.
create or replace function trunkline.refuse_row() returns trigger
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if new.size between 1 and 1024
       and (new.error is not null
            or array_ndims(new.payload) = 1 and array_lower(new.payload, 1) = 1 and cardinality(new.payload) = new.size
               and num_nulls(variadic new.payload) = 0
               and (new.metadata is null or array_ndims(new.metadata) = 1 and array_lower(new.metadata, 1) = 1
                    and cardinality(new.metadata) <= new.size)) then
        return new;
    end if;
    raise exception 'a row of % is no batch: its size is not its number of payloads, or a payload is null', tg_table_name
        using errcode = 'check_violation',
              hint = 'Enqueue through trunkline.enqueue or enqueue_many, or insert an array of one dimension, from 1 on, and its length (1 to 1,024) as size.';
end $$;
