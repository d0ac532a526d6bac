"""The story that `wk scenario new` writes: it holds as it is, and its comments show what can be added.

Never: a field that the model does not have.
"""

from __future__ import annotations

TEMPLATE = """\
# One story: what is asked for, what the cluster does, what must be seen. docs/scenarios.md shows every field.
title: A run that waits a little and trains for an hour ends well and is reported.
covers: [A4, F2]            # rules of the rule book that this story shows

request:                    # as in a request file
  name: train
  command: python train.py
  outputs: [out/model.bin]

# policy: {answer_s: 3600}  # numbers, as in `policy:` of a request
# cluster: {needs_image: true, capacity: [{free_gpu: 4}]}
# keys: [BRAINPP_ACCESS_KEY_ID]          # keys that are set
# library: [{purpose: train, image: "lab/train:1", worked: 3}]

history: [pending 2m, running 1h, succeeded]    # or {phase: pending, for: 2m, reason: Resources}
log:                        # from the start of the job
  - {steps: 1..60, every: 1m, loss: {from: 2.0, to: 0.5}}
  # - {repeat: "waiting for shard 7", every: 30s, times: 100}
  # - {silence: 2h}
files: [out/model.bin]      # written at its end

# answers: [{question: looks-off, after: 20m, reply: stop}]
# actions: [{at: 30m, do: stop}]
# faults:
#   submit: [{n: 1, answer: lost, created: true}]
#   away: [{from: 10m, to: 6h}]
#   kill: [{point: submit-after-call, down: 1m}]

expect:
  state: succeeded
  states: [preflight, submitting, queued, running, collecting, succeeded]
  calls: {submit: 1, stop: 0, observe: ">= 5"}
  questions: []
  reports: [{stage: wrap-up, must_not_miss: true, contains: [out/model.bin]}]
never:
  calls: [delete]
"""
