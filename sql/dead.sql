-- A page: the primary key is the cursor.
select id, enqueued_at, dead_at, attempt, error, array[payload] as payload, metadata
from trunkline.{dead_} where id > $1 order by id limit $2
