-- Returns the fingerprint of the functions that were installed last.
select coalesce((select functions from trunkline.version order by version desc limit 1), '')
