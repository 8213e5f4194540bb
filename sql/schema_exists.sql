-- Asks without failing, so that it can be asked inside a transaction.
select to_regclass('trunkline.migration') is not null
