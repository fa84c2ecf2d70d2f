"""Every machine of the engine checks itself after each step while these tests run."""

import os

os.environ["SPINNEY_VALIDATE"] = "1"
