create or replace function trunkline.discard_letters(queue text, ids bigint[], n bigint) returns setof bigint
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off as $$
-- Deletes dead letters permanently: those with the given ids or, if ids is null, the oldest; at most n (null means no
-- limit). Skips dead letters that another transaction has locked. Returns the ids of the deleted ones.
declare
    letters text := format('trunkline.%I', 'dead_' || queue);
    which text := case when ids is not null then 'where d.id = any ($1)' else '' end;
begin
    execute format('select array(select d.id from %s d %s order by d.id limit $2 for update skip locked)', letters, which)
        into ids using ids, n;
    return query execute format('delete from %s d where d.id = any ($1) returning d.id', letters) using ids;
end $$;
