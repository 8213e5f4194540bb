-- Waits for whoever is handing over; where nothing is left to delete, a message is on its way.
delete from trunkline.waiting where consumer = $1 returning consumer
