"""The functions of Undertow, one file for each family."""
