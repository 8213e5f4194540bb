-- The function drops every object of the queue; the library drops none itself.
select trunkline.drop_queue($1)
