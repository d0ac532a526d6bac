"""The clusters: the seam (`base`), one driver a file, and what they share (`run`, `wrapper`).

`local` runs real detached processes on this machine; the files `local_*` are its parts and light enough
for the launcher that stands by each of its jobs.

Never: import a driver from here, since light commands and launchers import this package; let one driver know
another.
"""
