-- Inserts a row whose messages have values in columns that users added. The null is never read. It
-- gives the payloads the column's type, for which no right to the table is needed.
select trunkline.enqueue_row($1, coalesce($2, (null::trunkline.{queue_}).payload), $3::pg_catalog.text::pg_catalog.jsonb, $4, $5, $6, $7)
