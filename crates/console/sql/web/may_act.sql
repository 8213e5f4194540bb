-- Returns whether this role can record actions, and whether the server is a standby.
select pg_catalog.has_any_column_privilege('trunkline.audit', 'insert'), pg_catalog.pg_is_in_recovery()
