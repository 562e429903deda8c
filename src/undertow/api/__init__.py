"""The public API: functions that can be called, run, mapped and shown as a graph."""
