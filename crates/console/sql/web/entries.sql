-- Returns the last actions before an entry, the newest first.
select a.id, a.at, left(a.who, 200), a.role, left(a.action, 100), a.queue, left(a.what, 2000), a.affected from trunkline.audit a where a.id < $1::bigint order by a.id desc limit 50
