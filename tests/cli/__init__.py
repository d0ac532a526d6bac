"""The command line as people use it: the real program in its own processes, on the real `local` cluster."""
