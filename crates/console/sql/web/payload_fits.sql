-- Fails unless the text is a payload of the queue. Enqueues nothing. The null gives the payload the queue's type.
select (trunkline.payload_as($1::text, (null::trunkline.{queue}).payload))[1] is null
