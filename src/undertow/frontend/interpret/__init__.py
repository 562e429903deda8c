"""Runs Python syntax during capture, one file for each kind of syntax."""
