-- As with creation, the function knows the objects.
select trunkline.drop_queue($1)
