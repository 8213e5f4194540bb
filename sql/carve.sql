-- Before an acknowledgement in somebody's transaction: whoever shares a row with these messages gets one of their own.
select count(trunkline.{do_carve_}(d.id, d.id + d.size, d.attempt, true)) from unnest($1::bigint[], $2::int[], $3::int[]) d(id, size, attempt)
