-- Dead letters by error, the most frequent first. An error is grouped by its first 200 characters: what follows is often of one message alone.
select left(d.error, 200), count(*), min(d.dead_at), max(d.dead_at) from trunkline.{dead} d where {conditions} group by 1 order by 2 desc, 1 limit 100
