create or replace function trunkline.page(of anyelement, after bigint, n bigint) returns setof anyelement
    language plpgsql stable
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off as $$
-- Returns a page of dead letters or of an archive; the primary key is the cursor. of: a null of the table's row type,
-- which names the table.
begin
    return query execute format('select l.* from %s l where l.id > $1 order by l.id limit $2', pg_typeof(of)) using after, n;
end $$;
