-- Returns the dead letters that an action concerns, the oldest up to a limit.
with chosen as (select d.id from trunkline.{dead} d where {conditions} order by d.id limit {limit}::bigint)
{wanted}
