-- Checks without failing, so that the statement can run inside a transaction. Before step 16 the
-- rows were only in `migration`.
select pg_catalog.to_regclass('trunkline.version') is not null, pg_catalog.to_regclass('trunkline.migration') is not null
