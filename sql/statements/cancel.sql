-- Deletes messages permanently; a worker that has leased one finds the lease lost. Busy messages are returned as not done.
select id, done from trunkline.cancel_messages($2, $1)
