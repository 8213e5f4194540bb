-- Asks without failing, so that it can be asked inside a transaction.
select pg_catalog.to_regclass('trunkline.migration') is not null
