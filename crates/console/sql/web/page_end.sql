-- Returns where a page ends, and whether there are more messages. A page has a number of messages after an id, and continues to the end of their row, computed
-- from the rows' sizes. Rows before the id are in one block of at most 1,024 ids.
select w.last, exists (select from trunkline.{queue} m where m.id > w.last)
from (select r.last, sum(r.size) over (order by r.last) - r.size as before
      from (select m.id + m.size - 1 as last, m.id + m.size - 1 - greatest(m.id - 1, $1::bigint) as size
            from trunkline.{queue} m where m.id > $1::bigint - 1024 and m.id + m.size - 1 > $1::bigint order by m.id limit $2::bigint) r) w
where w.before < $2::bigint
order by w.last desc limit 1
