-- Stores the headers of the functions that all queues share as their descriptions.
select trunkline.describe_functions(null)
