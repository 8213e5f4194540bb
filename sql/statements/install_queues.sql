-- Every queue's functions as they are now.
select trunkline.install_queue(name) from trunkline.queue order by name
