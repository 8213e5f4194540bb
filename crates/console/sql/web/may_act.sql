-- Returns whether actions can be recorded, and whether this is a standby.
select pg_catalog.has_any_column_privilege('trunkline.audit', 'insert'), pg_catalog.pg_is_in_recovery()
