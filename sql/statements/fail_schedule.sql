-- Runs in a separate transaction, because the transaction of the tick was rolled back.
select trunkline.fail_schedule($1, $2, $3, $4)
