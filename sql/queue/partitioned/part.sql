create or replace function trunkline.{do_part_}(row_id bigint, lined text[])
    returns void language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Moves the messages of these keys out of a row that the caller has locked into the backlogs (lines) of the keys, as
-- rows of one key each. The rest of the row stays in the partition's backlog.
#variable_conflict use_variable
declare
    r record;
    cuts int[];
begin
    select q.size, q.keys into r from trunkline.{queue_} q where q.id = row_id;
    -- Of thousands of keys, the row has a few. A subquery is hashed, and an array is not.
    lined := array(select distinct k.key from unnest(r.keys) k(key) where (k.key in (select u.key from unnest(lined) u(key))) is true);
    cuts := array(
        select k.at::int from (select u.key, u.nr - 1 as at, lag(u.key) over (order by u.nr) as before
                               from unnest(r.keys) with ordinality u(key, nr)) k
        where k.at > 0 and k.key <> k.before and (k.key = any (lined) or k.before = any (lined)));
    if cuts = '{}' then
        update trunkline.{queue_} q set line = q.keys[1] where q.id = row_id and q.keys[1] = any (lined);
    else
        perform trunkline.{do_split_}(row_id, cuts, lined);
    end if;
end $f$;
