"""How the app is served: the headers of its replies, and what a visitor may send."""
