create or replace function trunkline.discard_some(queue text, ids bigint[], n bigint) returns setof bigint
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off as $$
-- Deletes dead letters permanently: those with the given ids or, if ids is null, the oldest; at most n (null means no
-- limit). Skips dead letters that another transaction has locked.
begin
    return query execute format(
        'delete from trunkline.%1$I d where d.id = any (array(
             select d.id from trunkline.%1$I d %2$s order by d.id limit $2 for update skip locked)) returning d.id',
        'dead_' || queue, case when ids is not null then 'where d.id = any ($1)' end) using ids, n;
end $$;
