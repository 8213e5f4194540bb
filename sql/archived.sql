-- A page, as with dead letters.
select id, enqueued_at, archived_at, attempt, array[payload] as payload, metadata from trunkline.{do_archived_}($1, $2)
