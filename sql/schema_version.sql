-- Steps are only ever added.
select coalesce(pg_catalog.max(version), 0) from trunkline.migration
