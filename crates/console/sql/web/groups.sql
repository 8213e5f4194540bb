-- Groups dead letters by the kind of their error, the most frequent kind first. Identical lines are counted first, because comparing
-- different lines takes longer.
select {kind}, pg_catalog.sum(l.letters)::bigint, pg_catalog.min(l.first), pg_catalog.max(l.last)
from (select {line} as line, pg_catalog.count(*) as letters, pg_catalog.min(d.dead_at) as first, pg_catalog.max(d.dead_at) as last
      from trunkline.{dead} d where {conditions} group by 1) l
group by 1 order by 2 desc, 1 limit 100
