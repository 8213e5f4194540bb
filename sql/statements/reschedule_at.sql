-- Due at a time; one that has passed is now. What is busy is not done.
select id, done from trunkline.{do_reschedule_}($1, $2)
