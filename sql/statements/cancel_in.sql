-- On the caller's connection: what is locked is tried again for a tenth of a second, and then passed over.
select id from trunkline.cancel($1, $2) id
