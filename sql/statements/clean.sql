-- Does what `discard all` does, except that it keeps prepared statements, which are identified by their texts, and temporary tables.
close all; set session authorization default; reset all; unlisten *; select pg_catalog.pg_advisory_unlock_all()
