-- A sequence behind its table, as after a restore of data alone or a switch to a logical replica.
select 'wrong', {name}, format('the sequence of ids is at %s, and message %s exists', s.last_value, m.id), null::timestamptz,
       'Enqueues fail with a duplicate key until it is past its table.',
       format('select trunkline.repair_sequence(%L);', {name})
from trunkline.{id} s, (select max(id) as id from trunkline.{queue}) m
where m.id >= s.last_value + 1024
