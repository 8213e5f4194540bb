-- Nothing is stored or flushed: the message travels inside the notification.
select trunkline.send_direct($1, $2, $3)
