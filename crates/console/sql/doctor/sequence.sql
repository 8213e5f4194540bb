-- Finds a sequence that is behind its queue, dead letters or archive, as after a restore of data alone or a switch to a logical replica. Compares the
-- next number of the sequence. Ids in the upper half of the number range are ignored: see trunkline.repair_sequence.
select 'wrong', {name}, format('the next id of the sequence is %s, but message %s already exists', s.next_id, m.id), null::timestamptz,
       'Enqueues fail with a duplicate key, or reuse ids of dead letters and archived messages.',
       format('select * from trunkline.rebuild(%L);', {name})
from (select least(i.last_value, 9223372036854774783) + case when i.is_called then 1024 else 0 end as next_id from trunkline.{id} i) s,
     (select 4611686018427387904 as half) h,
     lateral (select greatest((select max(q.id) from trunkline.{queue} q where q.id < h.half), (select max(d.id) from trunkline.{dead} d where d.id < h.half),
                              (select max(a.id) from trunkline.{archive} a where a.id < h.half)) as id) m
where m.id >= s.next_id
