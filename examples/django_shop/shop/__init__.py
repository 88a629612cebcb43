"""A shop with Django: an order and the job that writes its invoice are committed together, or not at all."""
