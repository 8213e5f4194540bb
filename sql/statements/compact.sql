-- Gives the disk space of deleted rows back while no vacuum can.
select freed, refused from trunkline.compact($1, if_held => true)
