create or replace function trunkline.check_ids(ids bigint[], verb text) returns bigint[]
    language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
-- The ids of dead letters that were asked for. Null is not all of them: a null that slipped in must not empty the table.
begin
    if ids is null then
        raise exception 'which dead letters? the ids are null' using errcode = 'null_value_not_allowed',
            hint = format('Pass an array of ids, or use trunkline.%s_all(queue).', verb);
    end if;
    return ids;
end $$;
