-- Makes the headers of the functions that all queues share their descriptions.
select trunkline.describe_functions(null)
