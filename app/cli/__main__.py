"""``python -m app.cli`` is ``forensic``, wherever its script is not on the PATH."""

from app.cli.main import main

main()
