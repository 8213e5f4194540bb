create or replace function trunkline.letters_after(queue text, after bigint, n bigint) returns bigint[]
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
-- Returns the ids of up to n dead letters after an id, in order. A client that replays or discards
-- all dead letters page by page begins each page where the previous one ended. From the smallest id
-- on, it would pass the removed entries of all earlier pages, which an old snapshot keeps.
declare
    ids bigint[];
begin
    execute format('select array(select d.id from trunkline.%I d where d.id > $1 order by d.id limit $2)', 'dead_' || queue)
        into ids using after, n;
    return ids;
end $$;
