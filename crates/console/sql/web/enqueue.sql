-- The payload is text in the form of the queue's own type, which the server checks.
select trunkline.enqueue($3, $6::text, pg_catalog.make_interval(secs => $8), $7::text::jsonb, $9::int, key => $10::text) as id, 1::bigint as n
