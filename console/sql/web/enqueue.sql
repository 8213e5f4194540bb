-- The payload is text of the queue's own type, which the server checks.
select (trunkline.enqueue($3, $5::text, make_interval(secs => $7), $6::text::jsonb, $8::int, key => $9::text) is not null)::int::bigint as n
