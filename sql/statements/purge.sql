-- Also deletes leased messages. Their workers find the leases lost.
select trunkline.purge($1)
