-- Finds relays that have vanished, and relays whose broker prevents progress. A relay that shuts down cleanly deletes its row; a running relay
-- updates its row every ten seconds. If another relay has taken over, nothing is wrong.
select 'wrong', r.queue,
       pg_catalog.format('relay %s has reported nothing for %s, and did not shut down cleanly', pg_catalog.left(r.name, 200), pg_catalog.date_trunc('second', pg_catalog.now() - r.seen_at)),
       r.seen_at,
       'It was killed, or cannot reach the database. Messages wait until a relay carries them.',
       pg_catalog.format('delete from trunkline.relay where queue = %L and name = %L; -- if the relay is retired%s; otherwise start it again', r.queue, r.name,
                         case when r.inward then ', because this discards its position' end)
from trunkline.relay r
-- excludes relays that shut down cleanly, whose time is infinite
where r.seen_at < pg_catalog.now() - greatest(interval '{patience}', interval '1 minute') and pg_catalog.isfinite(r.seen_at)
  and not (r.inward and r.holder is null and r.held_until = '-infinity') -- excludes relays that have released their position
  and not exists (select from trunkline.relay o
                  where o.queue = r.queue and o.broker = r.broker and o.inward = r.inward and o.seen_at > pg_catalog.now() - interval '1 minute')
union all
select case when r.inward or r.lag > 0 or r.held > 0 then 'wrong' else 'advice' end, r.queue,
       pg_catalog.format('relay %s fails, the last time at %s: %s', pg_catalog.left(r.name, 200), pg_catalog.date_trunc('second', r.failed_at), pg_catalog.left(pg_catalog.regexp_replace(pg_catalog.left(r.last_error, 1000), '\s+', ' ', 'g'), 200)),
       null, -- the row does not keep the time of the first failure
       'Messages wait until the broker accepts them or, for a relay from a broker, delivers them.',
       pg_catalog.format('select name, lag, held, refused, last_error, failed_at from trunkline.relay where queue = %L;', r.queue)
from trunkline.relay r
where r.seen_at > pg_catalog.now() - interval '1 minute' and r.last_error is not null
  and r.failed_at > pg_catalog.now() - greatest(interval '{patience}', interval '1 minute')
union all
-- A relay from a broker that stopped at an error reported it last, and released its position.
select 'wrong', r.queue,
       pg_catalog.format('relay %s has stopped: %s', pg_catalog.left(r.name, 200), pg_catalog.left(pg_catalog.regexp_replace(pg_catalog.left(r.last_error, 1000), '\s+', ' ', 'g'), 200)),
       r.failed_at,
       'No message arrives from the broker until the cause is removed and the relay is started again.',
       pg_catalog.format('select position, last_error, failed_at from trunkline.relay where queue = %1$L and name = %2$L; -- or delete this row, with its position, if the relay is retired', r.queue, r.name)
from trunkline.relay r
where r.inward and r.holder is null and r.held_until = '-infinity' and r.failed_at >= r.seen_at
  and r.seen_at <= pg_catalog.now() - interval '1 minute'
order by 2, 3
