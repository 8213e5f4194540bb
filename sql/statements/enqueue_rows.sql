-- Like enqueue_row, on the caller's connection: the server splits the messages into rows.
select * from trunkline.enqueue_rows($1, coalesce($2, (null::trunkline.{queue_}).payload), $3::pg_catalog.text::pg_catalog.jsonb, $4, $5, $6, $7)
