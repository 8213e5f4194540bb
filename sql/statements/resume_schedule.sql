-- Errs where there is none.
select trunkline.resume_schedule($1)
