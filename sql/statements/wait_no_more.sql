-- Waits for a session that is handing over; where nothing is left to delete, a message is on its way.
select consumer from trunkline.wait_no_more($1) consumer
