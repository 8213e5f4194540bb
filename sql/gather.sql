-- Cuts what stands first, so that a take inside a transaction finds rows that fit; commits and lets go of them.
select cardinality(tids) from trunkline.{do_gather_}($1, $2, $3)
