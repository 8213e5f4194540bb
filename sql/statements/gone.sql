-- For handlers that run for long and want to know: reads, where a renewal would write.
select id from trunkline.{do_gone_}($1, $2) id
