"""The words that a person reads, in that person's language: gettext catalogues, and who it is that reads."""
