"""Pure functions from captured attention to plotly figures. No torch, no streamlit, no other project module."""
