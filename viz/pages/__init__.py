"""The scripts of the pages, which Streamlit runs."""
