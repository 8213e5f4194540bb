-- A page, as with dead letters.
select id, enqueued_at, archived_at, attempt, array[payload] as payload, metadata
from trunkline.{archive_} where id > $1 order by id limit $2
