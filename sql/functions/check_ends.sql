create or replace function trunkline.check_ends(ids bigint[], attempts int[]) returns void
    language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
-- Fails if the ids or the attempts of leases are an array of more than one dimension, in which no null can be searched.
begin
    if array_ndims(ids) > 1 or array_ndims(attempts) > 1 then
        raise exception 'ids and attempts must be arrays of one dimension, not of %', greatest(array_ndims(ids), array_ndims(attempts))
            using errcode = 'array_subscript_error', hint = 'Pass id and attempt as trunkline.lease returned them.';
    end if;
end $$;
