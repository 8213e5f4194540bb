-- Returns the disk space of deleted rows to the system while vacuum cannot.
select freed, refused from trunkline.compact($1, if_held => true)
