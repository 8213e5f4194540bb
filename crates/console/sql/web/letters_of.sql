-- Returns the dead letters that an action affects, in the order of their ids, up to a limit.
with chosen as (select d.id from trunkline.{dead} d where {conditions} order by d.id limit {limit}::bigint)
{wanted}
