-- Dead letters with these ids are due again, or (null) the oldest, at most n of them (null is all). Under the same ids and
-- with their attempts forgiven; attempt numbers go on from where they were: one that came again would let a late worker
-- acknowledge what somebody else holds. Passes over what somebody else has locked.
create or replace function trunkline.{do_replay_}(ids bigint[], n bigint)
    returns setof bigint language plpgsql {planner} as $f$
#variable_conflict use_variable
begin
    if ids is null then
        ids := array(select d.id from trunkline.{dead_} d order by d.id limit n for update skip locked);
    else
        ids := array(select d.id from trunkline.{dead_} d where d.id = any (ids) order by d.id limit n for update skip locked);
    end if;
    return query
        with back as (delete from trunkline.{dead_} d where d.id = any (ids) returning d.*)
        insert into trunkline.{queue_} as q (id, enqueued_at, attempt, released, size, error, payload, metadata)
        select b.id, b.enqueued_at, b.attempt + b.released, b.attempt + b.released, 1, '', array[b.payload],
               case when b.metadata is not null then array[b.metadata] end
        from back b order by b.id returning q.id;
end $f$;
