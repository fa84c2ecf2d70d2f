"""Run by `python -m spinney`."""

import sys

from spinney.cli.main import main

sys.exit(main())
