-- Reads the version of a schema without a table `version`, which only 0.1.0 has migrated: its last step. Rows of
-- `migration` are never deleted.
select coalesce(pg_catalog.max(m.version), 0) from trunkline.migration m
