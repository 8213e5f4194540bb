-- Nothing is stored and nothing is flushed: the message travels inside the notification.
select trunkline.send_direct($1, $2, $3)
