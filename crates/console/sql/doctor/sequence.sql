-- A sequence behind its queue, dead letters or archive, as after a restore of data alone or a switch to a logical replica: by the number that it gives out next.
select 'wrong', {name}, format('the sequence of ids gives out %s next, and message %s exists', s.next_id, m.id), null::timestamptz,
       'Enqueues fail with a duplicate key, or give the ids of dead letters and archived messages again.',
       format('select * from trunkline.rebuild(%L);', {name})
from (select i.last_value + case when i.is_called then 1024 else 0 end as next_id from trunkline.{id} i) s,
     (select greatest((select max(q.id) from trunkline.{queue} q), (select max(d.id) from trunkline.{dead} d), (select max(a.id) from trunkline.{archive} a)) as id) m
where m.id >= s.next_id
