-- Returns one message from whichever table contains it. Its payload is an array, as in other reads.
select state, attempt, due_at, ended_at, enqueued_at, error, array[payload] as payload, metadata, priority, key from trunkline.{do_find_}($1)
