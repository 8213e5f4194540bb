-- The function checks the bounds, and renews what depends on the settings. Null leaves a setting as it is.
select trunkline.alter_queue($1, $2, $3 operator(pg_catalog.*) interval '1 second', $4, $5 operator(pg_catalog.*) interval '1 second', $6, $7)
