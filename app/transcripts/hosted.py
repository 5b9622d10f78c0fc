"""Results of the tools that a platform runs itself. Each item type keeps them in a shape of its own."""

from app.transcripts.entry import Entry
from app.transcripts.model import Json, Segment
from app.transcripts.notes import Notes
from app.transcripts.outputs import Output, failed, judged, missing, result


def sources(entry: Entry, _: Notes) -> Output:
    """Read the addresses a web search found; the text of the pages is never recorded."""
    action = entry.item.get("action")
    listed = action.get("sources") if isinstance(action, dict) else None
    if not isinstance(listed, list):
        return judged(entry, missing(entry))
    segments = tuple(
        entry.string(source["url"], "action", "sources", number, "url")
        for number, source in enumerate(listed)
        if isinstance(source, dict) and isinstance(source.get("url"), str)
    )
    urls = [segment.text for segment in segments]
    place = entry.pointer("action", "sources")
    return judged(entry, Output({"sources": urls}, place, True, text="\n".join(urls), segments=segments))


def files(entry: Entry, _: Notes) -> Output:
    """Read the passages that a file search found."""
    listed = entry.item.get("results")
    if not isinstance(listed, list):
        return judged(entry, missing(entry))
    hits = [(number, hit) for number, hit in enumerate(listed) if isinstance(hit, dict)]
    value = [{key: hit[key] for key in ("filename", "score", "text") if key in hit} for _, hit in hits]
    segments = tuple(
        entry.string(hit[key], "results", number, key)
        for number, hit in hits
        for key in ("filename", "text")
        if isinstance(hit.get(key), str)
    )
    text = "\n".join(segment.text for segment in segments)
    return judged(entry, Output(value, entry.pointer("results"), True, text=text, segments=segments))


def logs(entry: Entry, _: Notes) -> Output:
    """Read what a code interpreter printed and drew. Older recordings call the list ``results``."""
    key = "outputs" if isinstance(entry.item.get("outputs"), list) else "results"
    listed = entry.item.get(key)
    if not isinstance(listed, list):
        return judged(entry, missing(entry))
    texts: list[str] = []
    segments: list[Segment] = []
    for number, piece in enumerate(listed):
        printed = piece.get("logs") if isinstance(piece, dict) else None
        if isinstance(printed, str):
            segments.append(entry.string(printed, key, number, "logs"))
        texts.append(printed if isinstance(printed, str) else _picture_or_file(piece))
    text = "\n".join(texts)
    return judged(entry, Output(text, entry.pointer(key), True, text=text, segments=tuple(segments)))


def picture(entry: Entry, _: Notes) -> Output:
    """Read a generated picture: ``[image]``, never its bytes."""
    if not entry.item.get("result"):
        return judged(entry, missing(entry))
    return judged(entry, Output("[image]", entry.pointer("result"), True, text="[image]"))


def screenshot(entry: Entry, notes: Notes) -> Output:
    """Read a screenshot as ``[image]``; whatever else stands in its place as it is."""
    if not isinstance(entry.item.get("output"), dict):
        return result(null_counts=False)(entry, notes)
    return judged(entry, Output("[image]", entry.pointer("output"), True, text="[image]"))


def shell(entry: Entry, notes: Notes) -> Output:
    """Read the output of shell commands; a timeout or a non-zero exit code is a failure."""
    listed = entry.item.get("output")
    if not isinstance(listed, list) or not all(isinstance(piece, dict) for piece in listed):
        return result()(entry, notes)
    value, problems = [], []
    segments: list[Segment] = []
    for number, piece in enumerate(listed):
        printed = {key: piece[key] for key in ("stdout", "stderr") if isinstance(piece.get(key), str)}
        segments += [entry.string(text, "output", number, key) for key, text in printed.items() if text]
        ended, problem = _ended(piece.get("outcome"))
        value.append(printed | ended)
        problems += [problem] if problem else []
    text = "\n".join([segment.text for segment in segments] + [f"[{problem}]" for problem in problems])
    found = judged(entry, Output(value, entry.pointer("output"), True, text=text, segments=tuple(segments)))
    return failed(found, problems[0]) if problems else found


def tool_names(entry: Entry, _: Notes) -> Output:
    """Read the names of the tools that a search found; the tools themselves join the catalogue."""
    listed = entry.item.get("tools")
    if not isinstance(listed, list):
        return judged(entry, missing(entry))
    segments = tuple(
        entry.string(tool["name"], "tools", number, "name")
        for number, tool in enumerate(listed)
        if isinstance(tool, dict) and isinstance(tool.get("name"), str)
    )
    names = [segment.text for segment in segments]
    place = entry.pointer("tools")
    return judged(entry, Output(names, place, True, text=", ".join(names), segments=segments))


def _ended(outcome: Json) -> tuple[dict[str, Json], str | None]:
    if not isinstance(outcome, dict):
        return {}, None
    if outcome.get("type") == "timeout":
        return {"timeout": True}, "timeout"
    code = outcome.get("exit_code")
    return ({} if code is None else {"exit_code": code}), (f"exit code {code}" if code else None)


def _picture_or_file(piece: Json) -> str:
    return "[image]" if isinstance(piece, dict) and piece.get("type") == "image" else "[file]"
