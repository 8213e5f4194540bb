-- Records that the queues were tended after the migration, unless another version migrated since.
update trunkline.version set functions = $1 where functions operator(pg_catalog.=) $2
