-- By age, along the index.
select trunkline.{do_prune_}($1 * interval '1 second')
