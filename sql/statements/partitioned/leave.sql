-- Releases all partitions of a holder.
select trunkline.{do_leave_}(null, $1)
