create or replace function trunkline.replay_some(queue text, ids bigint[], n bigint) returns setof bigint
    language plpgsql
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off as $$
-- Makes dead letters due again: those with the given ids or, if ids is null, the oldest; at most n (null means no
-- limit). They keep their ids and get a fresh set of attempts. Attempt numbers continue from the previous ones: a
-- repeated number would let a late worker acknowledge a message that another worker has leased. Skips dead letters that
-- another transaction has locked.
declare
    dead text := format('trunkline.%I', 'dead_' || queue);
    main text := format('trunkline.%I', 'queue_' || queue);
    replayed bigint;
    taken bigint[];
    others bigint[];
    letter bigint;
    restore text;
    refused_by text;
begin
    execute format('select array(select d.id from %s d %s order by d.id limit $2 for update skip locked)',
                   dead, case when ids is not null then 'where d.id = any ($1)' end) into ids using ids, n;
    -- If the sequence fell behind, a message may have the id by now: then the dead letter gets another id (see
    -- trunkline.keep_letter).
    execute format(
        'select array(select d.id from unnest($1) d(id) where exists (
             select from %s q where q.id <= d.id and q.id >= d.id / 1024 * 1024 and q.id + q.size > d.id))', main) into taken using ids;
    if taken <> '{}' then
        ids := array(select d.id from unnest(ids) d(id) where d.id not in (select t from unnest(taken) t));
        for letter in execute format('update %s d set id = d.id where d.id = any ($1) returning d.id', dead) using taken loop
            ids := ids || letter;
        end loop;
    end if;
    return query execute format(
        'with back as (delete from %s d where d.id = any ($1) and d.own is null returning d.*)
         insert into %s as q (id, enqueued_at, attempt, released, size, error, payload, metadata)
         select b.id, b.enqueued_at, b.attempt + b.released, b.attempt + b.released, 1, '''', array[b.payload],
                case when b.metadata is not null then array[b.metadata] end
         from back b order by b.id returning q.id', dead, main) using ids;
    get diagnostics replayed = row_count;
    if replayed = cardinality(ids) then
        return;
    end if;
    -- The remaining dead letters have values of columns that users added.
    execute format('select array(select d.id from %s d where d.id = any ($1) order by d.id)', dead) into others using ids;
    if replayed + cardinality(others) <> cardinality(ids) then
        perform trunkline.not_stored(queue, cardinality(ids) - cardinality(others), replayed);
    end if;
    restore := format(
        'with back as (delete from %s d where d.id = any ($1) returning d.*), put as materialized (
             select b.id, trunkline.%I(b.id, b.enqueued_at, b.attempt + b.released, b.attempt + b.released, '''', 1, array[b.payload],
                                       case when b.metadata is not null then array[b.metadata] end, b.own)
             from (select * from back order by id) b)
         select array(select p.id from put p order by p.id)', dead, 'do_back_' || queue);
    begin
        execute restore into ids using others;
    exception when data_exception or not_null_violation or check_violation or foreign_key_violation then
        get stacked diagnostics refused_by = constraint_name;
        if refused_by = 'drained' then
            raise; -- the queue was drained on this server, and refuses every message
        end if;
        -- Restores the dead letters one by one, to name the one whose value does not fit.
        foreach letter in array others loop
            begin
                execute restore using array[letter];
            exception when data_exception or not_null_violation or check_violation or foreign_key_violation then
                get stacked diagnostics refused_by = constraint_name;
                if refused_by = 'drained' then
                    raise;
                end if;
                raise exception 'dead letter % of queue % has a value that does not fit a column that you added: %', letter, queue, sqlerrm
                    using errcode = sqlstate, constraint = refused_by, hint = format(
                        'Put it right in trunkline.%I, column own; take it out there, and the column''s default stands in; or discard the letter.',
                        'dead_' || queue);
            end;
        end loop;
        raise;
    end;
    return query select unnest(ids);
end $$;
