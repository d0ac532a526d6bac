"""Looks at what a run leans on before it is submitted: assets, environments, package sets; and the program that
fetches what is missing. What a look found is judged in `states/`.

Never: run a file of the workspace; copy what is on a cluster path already; overwrite what is there.
"""
