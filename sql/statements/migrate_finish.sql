-- Records that every queue's functions are described, unless another version migrated since.
update trunkline.version set functions = $1 where functions operator(pg_catalog.=) $2
