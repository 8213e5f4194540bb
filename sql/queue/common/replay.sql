create or replace function trunkline.{do_replay_}(ids bigint[], n bigint)
    returns setof bigint language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $f$
-- Makes dead letters due again: those with the given ids or, if ids is null, the oldest; at most n (null means no limit). They keep their ids and get
-- a fresh set of attempts. Attempt numbers continue from the previous ones: a repeated number would let a late worker acknowledge a message that
-- another worker has leased. Skips dead letters that another transaction has locked.
#variable_conflict use_variable
declare
    letter trunkline.{dead_}%rowtype;
    plain bigint;
    taken bigint[];
begin
    if ids is null then
        ids := array(select d.id from trunkline.{dead_} d order by d.id limit n for update skip locked);
    else
        ids := array(select d.id from trunkline.{dead_} d where d.id = any (ids) order by d.id limit n for update skip locked);
    end if;
    -- If the sequence fell behind, a message may have the id by now: then the dead letter gets another id (see trunkline.keep_letter).
    taken := array(
        select d.id from unnest(ids) d(id) where exists (
            select from trunkline.{queue_} q where q.id <= d.id and q.id >= d.id / 1024 * 1024 and q.id + q.size > d.id));
    if taken <> '{}' then
        ids := array(select d.id from unnest(ids) d(id) where d.id <> all (taken));
        for plain in update trunkline.{dead_} d set id = d.id where d.id = any (taken) returning d.id loop
            ids := ids || plain;
        end loop;
    end if;
    return query
        with back as (delete from trunkline.{dead_} d where d.id = any (ids) and d.own is null returning d.*)
        insert into trunkline.{queue_} as q (id, enqueued_at, attempt, released, size, error, payload, metadata)
        select b.id, b.enqueued_at, b.attempt + b.released, b.attempt + b.released, 1, '', array[b.payload],
               case when b.metadata is not null then array[b.metadata] end
        from back b order by b.id returning q.id;
    get diagnostics plain = row_count;
    if plain = cardinality(ids) then
        return;
    end if;
    -- The remaining dead letters have values of columns that users added.
    begin
        for letter in delete from trunkline.{dead_} d where d.id = any (ids) returning d.* loop
            perform trunkline.{do_back_}(
                letter.id, letter.enqueued_at, letter.attempt + letter.released, letter.attempt + letter.released, '', 1,
                array[letter.payload], case when letter.metadata is not null then array[letter.metadata] end, letter.own);
            return next letter.id;
        end loop;
    exception when data_exception or not_null_violation or check_violation or foreign_key_violation then
        raise exception 'dead letter % of queue % has a value that does not fit a column of yours: %', letter.id, {literal}, sqlerrm
            using errcode = sqlstate, hint = format(
                'Put it right in trunkline.%I, column own; take it out there, and the column''s default stands in; or discard the letter.',
                'dead_' || {literal});
    end;
end $f$;
