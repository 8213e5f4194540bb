-- Deletes archived messages by age, along the index.
select trunkline.prune_archive($2, $1 operator(pg_catalog.*) interval '1 second')
