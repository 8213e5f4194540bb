-- Now, and the next tick as if nothing had been.
select trunkline.fire_schedule($1)
