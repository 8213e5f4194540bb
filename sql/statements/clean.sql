-- Does what `discard all` does, but keeps prepared statements, which are identified by their texts.
close all; set session authorization default; reset all; unlisten *; discard temp; select pg_catalog.pg_advisory_unlock_all()
