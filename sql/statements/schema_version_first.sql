-- Reads the version of a schema that no program newer than 0.1.0 has migrated. Steps are only ever added.
select coalesce(pg_catalog.max(m.version), 0) from trunkline.migration m
