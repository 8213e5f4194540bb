-- Due again at once, and the attempt is not charged.
select id, size, attempt from trunkline.{do_release_}($1, $2, $3)
