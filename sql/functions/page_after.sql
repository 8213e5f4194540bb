create or replace function trunkline.page_after(example anyelement, after bigint, n bigint) returns setof anyelement
    language plpgsql stable
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off as $$
-- Returns a page of dead letters or of the archive: the next n rows after an id. The primary key is the cursor.
-- example: a row of the table, or null, of which only the type matters.
begin
    return query execute format('select r.* from %s r where r.id > $1 order by r.id limit $2', pg_typeof(example)) using after, n;
end $$;
