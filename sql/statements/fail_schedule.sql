-- By itself, because the transaction of the tick is gone.
select trunkline.fail_schedule($1, $2, $3, $4)
