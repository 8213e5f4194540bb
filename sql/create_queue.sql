-- The function knows every object of a queue; nothing is created from here.
select trunkline.create_queue($1, $2::text::regtype, $3, $4 * interval '1 second', $5, $6, $7 * interval '1 second', $8, $9, $10)
