"""A failure that is the user's to mend: told in a line or two, without a traceback, with exit code 2."""


class CommandError(Exception):
    """The command cannot go on. ``lines`` say why, plainly and free of control characters."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
