-- Gone for good; a lease that is not there any more is lost to its worker. What is busy is not done.
select id, done from trunkline.{do_cancel_}($1)
