-- Returns the type of a queue's payloads, as it is written in a statement, and whether its messages
-- have keys.
select pg_catalog.format_type(trunkline.payload_type($1), -1),
       exists (select from trunkline.queue q where q.name operator(pg_catalog.=) $1 and q.lanes operator(pg_catalog.>) 0)
