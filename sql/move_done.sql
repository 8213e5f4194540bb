-- The other stripe has them.
delete from trunkline.moving m where m.queue = $1 and m.target = $2 and m.id = any ($3::bigint[])
