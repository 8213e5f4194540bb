-- Releases all lanes of a holder.
select trunkline.{do_leave_}(null, $1)
