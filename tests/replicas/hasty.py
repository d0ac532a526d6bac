"""`wk` as it is, but for how long a dead one's claims are respected: minutes in life, seconds here.

Never: anything else changed.
"""

from __future__ import annotations

import sys

from agent import database, leases, wave
from agent.__main__ import main

LEASE_S = 12.0
"""Nine tenths of it outlast a submit to the local cluster (10 s)."""

leases.LEASE_S = LEASE_S
for bounded in (leases.claim, leases.renew):
    bounded.__kwdefaults__["lease_s"] = LEASE_S
wave.CLAIM_S = 4.0
database.BOUNDS.update(idle_in_transaction_session_timeout="3s", lock_timeout="2s")

if __name__ == "__main__":
    sys.exit(main())
