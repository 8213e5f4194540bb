-- Returns whether messages were ever moved to another shard. The first drain that moves messages
-- creates the table.
select pg_catalog.to_regclass('trunkline.moving') is not null
