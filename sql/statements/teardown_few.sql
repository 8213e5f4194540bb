-- Some queues, in a transaction of their own: each has some seventy objects, and the server has room for the locks of a few thousand.
select trunkline.drop_queue(q.name, true) from (select q.name from trunkline.queue q order by q.name limit $1) q
