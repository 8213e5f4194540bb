-- One snapshot shows both the oldest row and the transactions that could still commit an older one.
select oldest, candidate, due_in, running, next, cost from trunkline.{do_look_}($1)
