-- Whether what is done can be written down, and whether this is a standby.
select pg_catalog.has_any_column_privilege('trunkline.audit', 'insert'), pg_catalog.pg_is_in_recovery()
