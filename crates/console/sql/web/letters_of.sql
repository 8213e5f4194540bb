-- The dead letters that an action is about, the oldest so many.
with chosen as (select d.id from trunkline.{dead} d where {conditions} order by d.id limit {limit}::bigint)
{wanted}
