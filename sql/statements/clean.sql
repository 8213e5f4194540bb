-- Does what `discard all` does, but keeps temporary tables and prepared statements, which are
-- identified by their texts.
close all; set session authorization default; reset all; unlisten *; select pg_catalog.pg_advisory_unlock_all()
