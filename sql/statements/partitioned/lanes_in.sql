-- Returns how long a holder that found nothing may sleep.
select trunkline.{do_lanesin_}($1)
