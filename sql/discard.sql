-- Null discards the oldest of all, up to the limit.
delete from trunkline.{dead_} where id in (
    select d.id from trunkline.{dead_} d where $1::bigint[] is null or d.id = any ($1) order by d.id limit $2 for update skip locked)
returning id
