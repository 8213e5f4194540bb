-- Describes the functions that all queues share by their headers.
select trunkline.describe_functions(null)
