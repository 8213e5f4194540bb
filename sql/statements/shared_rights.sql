-- Runs after the functions of the queues are installed: sets the roles' rights on the tables that all queues share.
select trunkline.apply_shared_rights()
