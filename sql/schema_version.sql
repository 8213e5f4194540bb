-- Steps are only ever added.
select coalesce(max(version), 0) from trunkline.migration
