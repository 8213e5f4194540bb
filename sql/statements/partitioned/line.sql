-- Tells the server of which keys the worker has enough messages for now.
select trunkline.{do_line_}($1, $2)
