-- Behind the functions of the queues: what roles may do with the tables that all queues share.
select trunkline.apply_shared_rights()
