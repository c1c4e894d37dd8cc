"""Reading of requests, and what is made of them before they are sent or kept."""
