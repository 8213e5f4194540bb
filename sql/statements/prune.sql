-- Deletes archived messages by age, along the index.
select trunkline.{do_prune_}($1 operator(pg_catalog.*) interval '1 second')
