-- The last actions before an entry, the newest first.
select a.id, a.at, a.who, a.action, a.queue, a.what, a.affected from trunkline.audit a where a.id < $1::bigint order by a.id desc limit 50
