-- Drops some queues, in a separate transaction: each has about seventy objects, and the server has room for the locks of a few thousand.
select trunkline.drop_queue(q.name, true) from (select q.name from trunkline.queue q order by q.name limit $1) q
