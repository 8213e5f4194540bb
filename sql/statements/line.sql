-- Keys of which enough is in hand.
select trunkline.{do_line_}($1, $2)
