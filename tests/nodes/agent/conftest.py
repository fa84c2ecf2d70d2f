"""Every machine of the agent checks itself after each step while these tests run."""

import os

os.environ["SPINNEY_VALIDATE"] = "1"
