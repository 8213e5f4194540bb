-- As `discard all`, but for prepared statements, which are known by their texts, and temporary tables.
close all; set session authorization default; reset all; unlisten *; select pg_catalog.pg_advisory_unlock_all()
