-- For the trigger of every queue's table: a row that no consumer could read never gets in.
create or replace function trunkline.refuse_row() returns trigger
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    raise exception 'a row of % has a size that is not its number of payloads, or a payload that is null', tg_table_name
        using errcode = 'check_violation',
              hint = 'Enqueue through trunkline.enqueue or enqueue_many, or insert an array of one dimension, from 1 on, and its length as size.';
end $$;
