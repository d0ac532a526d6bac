"""The hands: everything that touches a clock, a disk, a cluster, a model or a person.

Never: a decision about a job. Those are made in `states/`.
"""
