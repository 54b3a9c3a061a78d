"""Fitting and cross-validating the shipped calibrations on a folder of measured tables, which do not ship.

``rows`` reads the tables into calls, ``specs`` says which corrections each kind gets, ``least_squares``
fits, ``validate`` fits on some rows and looks at the others.
"""
