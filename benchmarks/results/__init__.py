"""The results page, made from the records of the studies."""
