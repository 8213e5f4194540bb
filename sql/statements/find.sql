-- One message, wherever it is; its payload as an array, as others are read.
select state, attempt, due_at, ended_at, enqueued_at, error, array[payload] as payload, metadata, priority, key from trunkline.{do_find_}($1)
