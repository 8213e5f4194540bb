-- Spreads the due times of messages that this transaction has replayed. No other session sees their rows yet. So this statement takes no lock on
-- partitions, as trunkline.reschedule does for each message.
with spread as (
    update trunkline.{queue} q set due_at = u.due {place}
    from (select m.id, greatest(trunkline.clock(), pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => m.place / $2::float8)) as due
          from pg_catalog.unnest($1::bigint[]) with ordinality m(id, place)) u
    where q.id = u.id
    returning q.id)
select s.n, case when trunkline.announced('trunkline.' || $3::text) then pg_catalog.pg_notify('trunkline.' || $3::text, '')::text end
from (select pg_catalog.count(*) as n from spread) s
