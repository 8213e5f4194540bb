-- Returns the queue, broker and direction of the relay with this name.
select queue, broker, inward from trunkline.relay where name operator(pg_catalog.=) $1 and queue operator(pg_catalog.=) $2
