"""The ledger, queues and expectations check themselves after every step."""

import os

os.environ["SPINNEY_VALIDATE"] = "1"
