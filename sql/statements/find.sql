-- Returns one message, in whichever table it is; its payload is an array, as in other reads.
select state, attempt, due_at, ended_at, enqueued_at, error, array[payload] as payload, metadata, priority, key from trunkline.{do_find_}($1)
