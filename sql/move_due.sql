-- What was delayed, or is to be retried, stays so. Never due before now, on which the floor rests.
update trunkline.{queue_} q set due_at = greatest(trunkline.clock(), d.due_at)
from unnest($1::bigint[], $2::timestamptz[]) d(id, due_at) where q.id = d.id and d.due_at > clock_timestamp()
