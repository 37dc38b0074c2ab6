"""Data on libraries: classes, signatures and roles.  Nothing here is imported by its library."""
