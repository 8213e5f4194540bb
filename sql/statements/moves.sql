-- Whether anything ever moved from here; the tables are made by the first drain that moves.
select pg_catalog.to_regclass('trunkline.moving') is not null
