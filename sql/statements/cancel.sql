-- Deletes messages permanently; a worker that has leased one finds the lease lost. Busy messages
-- are returned with done = false.
select id, done from trunkline.{do_cancel_}($1)
