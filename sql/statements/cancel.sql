-- Deletes messages permanently; a worker that has leased one finds the lease lost. Busy messages are returned as not done.
select id, done from trunkline.{do_cancel_}($1)
