-- Due now with attempts forgiven, under the same id; null replays the oldest of all, up to the limit. Attempt numbers go on from where
-- they were: one that came again would let a late worker acknowledge what somebody else holds.
with back as (
    delete from trunkline.{dead_} where id in (
        select d.id from trunkline.{dead_} d where $1::bigint[] is null or d.id = any ($1) order by d.id limit $2 for update skip locked)
    returning *)
insert into trunkline.{queue_} (id, enqueued_at, attempt, released, size, error, payload, metadata)
select id, enqueued_at, attempt + released, attempt + released, 1, '', array[payload], case when metadata is not null then array[metadata] end
from back order by id returning id
