create or replace function trunkline.{do_hold_}(ids bigint[], sizes int[])
    returns void language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Gives each key of these failed messages its own backlog (a line), which waits until its first
-- message is due again. Messages of the key that are behind it in the partition's backlog move to
-- the new backlog when a lease reaches them. So other keys can pass.
#variable_conflict use_variable
declare
    r record;
begin
    -- One statement, in the order of the keys: two sessions with the same keys would wait for each other.
    with failed as materialized (
        select q.lane, q.keys, q.due_at from unnest(ids, sizes) d(id, size)
        join trunkline.{queue_} q on q.id >= d.id and q.id < d.id + d.size
        where q.error is not null
    )
    insert into trunkline.{line_} as l (lane, key, until)
    select f.lane, k.key, max(f.due_at) from failed f, unnest(f.keys) k(key) group by f.lane, k.key order by f.lane, k.key
    on conflict (lane, key) do update set until = greatest(l.until, excluded.until);
    for r in
        select q.id, q.keys, q.line from unnest(ids, sizes) d(id, size)
        join trunkline.{queue_} q on q.id >= d.id and q.id < d.id + d.size
        where q.error is not null order by q.id
    loop
        continue when r.line <> ''; -- a row in a key's own line stays there
        perform trunkline.{do_part_}(r.id, r.keys);
    end loop;
end $f$;
