-- Puts taken messages that have no caller back under the same ids. They get an error, because
-- otherwise they would look like messages whose lease expired.
select trunkline.{do_back_}($1, $2, $3, $4, coalesce($5, ''), $6, $7, $8, $9::pg_catalog.text::pg_catalog.jsonb)
