-- The function creates every object of a queue; the library creates none itself.
select trunkline.create_queue($1, $2::pg_catalog.text, $3, $4 operator(pg_catalog.*) interval '1 second', $5, $6, $7 operator(pg_catalog.*) interval '1 second', $8, $9, $10)
