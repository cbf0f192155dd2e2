"""What the page Explore is made of: what is chosen, the map as it is arranged, and one function a view."""
