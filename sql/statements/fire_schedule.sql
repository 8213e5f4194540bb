-- Enqueues the message now and leaves the next tick unchanged.
select trunkline.fire_schedule($1)
