-- The function drops every object of the queue, as create_queue creates them.
select trunkline.drop_queue($1)
