-- Returns whether messages were ever moved from here: the first drain that moves messages creates the table.
select pg_catalog.to_regclass('trunkline.moving') is not null
