"""The public face: functions that call, run, map and show their graph."""
