-- Cuts what stands first, so that a take inside a transaction finds rows that fit; commits and lets go of them.
select trunkline.{do_cut_}($1, $2)
