-- Finds dead letters, which stay until an operator replays or discards them. They are wrong only if many died within the last hour. Reads at most the
-- 10,000 newest, and no payloads.
select case when d.fresh >= 10 then 'wrong' else 'advice' end, {name}::text,
       pg_catalog.format('%s%s dead letter%s, of which %s died within the last hour; the last error is: %s', case when d.n = 10000 then 'at least ' else '' end,
                         d.n, case when d.n = 1 then '' else 's' end, d.fresh, pg_catalog.left(pg_catalog.regexp_replace(d.error, '\s+', ' ', 'g'), 200)),
       d.since,
       'Consumers do not receive them. They stay until you replay or discard them.',
       pg_catalog.format('trunkline dead list %s   # then: trunkline dead replay, or trunkline dead discard', {name})
from (select pg_catalog.count(*) as n, pg_catalog.count(*) filter (where l.dead_at > pg_catalog.now() - interval '1 hour') as fresh,
             coalesce(pg_catalog.min(l.dead_at) filter (where l.dead_at > pg_catalog.now() - interval '1 hour'), pg_catalog.min(l.dead_at)) as since,
             (pg_catalog.array_agg(l.error order by l.dead_at desc))[1] as error
      from (select r.dead_at, pg_catalog.left(r.error, 1000) as error from trunkline.{dead} r order by r.id desc limit 10000) l) d
where d.n > 0
