"""Components alone in an empty page: what is drawn of the data that Python encodes, and what is sent back."""
