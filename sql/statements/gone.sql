-- Checks for the loss of leases, for long-running handlers: this only reads, whereas a renewal writes.
select id from trunkline.{do_gone_}($1, $2) id
