-- Deletes archived messages of a queue by age, along the index.
select trunkline.prune($1, $2 operator(pg_catalog.*) interval '1 second')
