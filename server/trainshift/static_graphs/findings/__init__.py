"""One file for each code of static graphs; `codes.py` lists them."""
