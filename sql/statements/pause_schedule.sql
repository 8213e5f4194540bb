-- Errs where there is none.
select trunkline.pause_schedule($1)
