-- Nothing is stored or flushed: the message travels inside the notification.
select trunkline.send_element($1, $2, $3)
