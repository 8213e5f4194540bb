-- Waits for a session that is handing a message over. If there is nothing left to delete, a message
-- is already being delivered.
select consumer from trunkline.wait_no_more($1) consumer
