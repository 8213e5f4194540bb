-- Acknowledges messages and keeps them in the archive.
select id, size, attempt from trunkline.{do_archive_}($1, $2, $3)
