-- The dead letters that an action is about: one, those of a group, or all; the oldest so many.
with chosen as (
    select d.id from trunkline.{dead} d
    where ($1::bigint is null or d.id = $1) and ($2::text is null or left(d.error, 200) = $2)
    order by d.id limit $3::bigint)
{wanted}
