-- Names keys of which the worker has enough messages in hand.
select trunkline.{do_line_}($1, $2)
