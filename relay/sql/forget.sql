-- A relay that ended, and those that ended without a word a day ago.
delete from trunkline.relay where name = $1 or not inward and seen_at < pg_catalog.clock_timestamp() - interval '1 day'
