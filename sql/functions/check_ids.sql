create or replace function trunkline.check_ids(ids bigint[], verb text) returns bigint[]
    language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
-- Returns the ids of dead letters that a caller passed. Null is an error and does not mean all: a null passed by
-- mistake must not empty the table.
begin
    if ids is null then
        raise exception 'the ids of the dead letters must not be null' using errcode = 'null_value_not_allowed',
            hint = format('Pass an array of ids, or use trunkline.%s_all(queue).', verb);
    end if;
    return ids;
end $$;
