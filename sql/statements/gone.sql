-- For long-running handlers that check for the loss of their lease: this only reads, whereas a renewal writes.
select id from trunkline.{do_gone_}($1, $2) id
