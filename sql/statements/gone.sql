-- Checks for lost leases, for long-running handlers. It only reads, whereas a renewal writes.
select id from trunkline.gone($1, $2, $3) id
