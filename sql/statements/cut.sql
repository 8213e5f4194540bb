-- Splits the first due row, so that a take inside a transaction finds rows that fit. Commits, and so releases the rows.
select trunkline.{do_cut_}($1, $2)
