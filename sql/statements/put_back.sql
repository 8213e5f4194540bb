-- Messages that were taken and have no caller, under the same ids. With an error, so that they are not taken for a lease that ran out.
select trunkline.{do_back_}($1, $2, $3, $4, coalesce($5, ''), $6, $7, $8, $9::pg_catalog.text::pg_catalog.jsonb)
