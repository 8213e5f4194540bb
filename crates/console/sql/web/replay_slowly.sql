-- Replays letters, and returns the ids of their messages. The next statement of the transaction (spread.sql) gives them their due times.
, back as materialized (select r.id from ids, trunkline.replay_some($3, ids.ids, null) r(id))
select pg_catalog.count(*) over () as n, back.id from back
