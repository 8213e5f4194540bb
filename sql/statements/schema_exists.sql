-- Asks without failing, so that it can be asked inside a transaction. Before step 16 there was `migration` alone.
select pg_catalog.to_regclass('trunkline.version') is not null, pg_catalog.to_regclass('trunkline.migration') is not null
