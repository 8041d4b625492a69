"""How a job scales: demand and capacity on a grid of loads and resources, and the laws fitted to them."""
