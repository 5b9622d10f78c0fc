"""The judges there are. Adding one is a file and a line here."""

from app.judges.contract import Judge
from app.judges.output.task_completion import TASK_COMPLETION
from app.judges.tools.argument_validity import ARGUMENT_VALIDITY
from app.judges.tools.tool_call_integrity import TOOL_CALL_INTEGRITY
from app.judges.tools.tool_redundancy import TOOL_REDUNDANCY
from app.judges.tools.tool_selection import TOOL_SELECTION

JUDGES: tuple[Judge, ...] = (
    TASK_COMPLETION,
    TOOL_CALL_INTEGRITY,
    ARGUMENT_VALIDITY,
    TOOL_SELECTION,
    TOOL_REDUNDANCY,
)

BY_NAME = {judge.name: judge for judge in JUDGES}
