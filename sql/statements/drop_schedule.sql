-- Errs where there is none.
select trunkline.drop_schedule($1)
