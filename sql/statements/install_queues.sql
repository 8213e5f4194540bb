-- Installs the current functions of every queue.
select trunkline.install_queue(name) from trunkline.queue order by name
