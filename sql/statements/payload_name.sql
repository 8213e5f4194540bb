-- Returns the type of a queue's payloads, as it is written in a statement.
select pg_catalog.format_type(trunkline.payload_type($1), -1)
