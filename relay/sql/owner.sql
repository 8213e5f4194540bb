-- Whose relay a name is.
select queue, broker, inward from trunkline.relay where name = $1
