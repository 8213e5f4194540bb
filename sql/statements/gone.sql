-- Checks for the loss of leases, for long-running handlers: this only reads, whereas a renewal writes.
select id from trunkline.gone($1, $2, $3) id
