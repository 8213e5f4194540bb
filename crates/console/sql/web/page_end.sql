-- Returns where a page ends, and whether more messages follow. The page has a number of messages after an id, and continues to the end of their row,
-- computed from the sizes of the rows. The rows before the id are from one block of 1,024 ids at most.
select w.last, exists (select from trunkline.{queue} m where m.id > w.last)
from (select r.last, sum(r.size) over (order by r.last) - r.size as before
      from (select m.id + m.size - 1 as last, m.id + m.size - 1 - greatest(m.id - 1, $1::bigint) as size
            from trunkline.{queue} m where m.id > $1::bigint - 1024 and m.id + m.size - 1 > $1::bigint order by m.id limit $2::bigint) r) w
where w.before < $2::bigint
order by w.last desc limit 1
