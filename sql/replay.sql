-- Due now with attempts forgiven, under the same id; null replays the oldest of all, up to the limit.
with back as (
    delete from trunkline.{dead_} where id in (
        select d.id from trunkline.{dead_} d where $1::bigint[] is null or d.id = any ($1) order by d.id limit $2 for update skip locked)
    returning *)
insert into trunkline.{queue_} (id, enqueued_at, size, payload, metadata)
select id, enqueued_at, 1, array[payload], case when metadata is not null then array[metadata] end from back order by id returning id
