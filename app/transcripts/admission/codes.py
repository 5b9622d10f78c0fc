"""Why a request can be refused: a closed set, so that a client's code can decide by it and the API can document it."""

from collections.abc import Mapping

VIOLATIONS: Mapping[str, str] = {
    "json_invalid": "The body is not JSON; `line` and `column` say where it stops being so.",
    "encoding_invalid": "The body is not UTF-8.",
    "nesting_too_deep": "Arrays and objects nest deeper than 200; the body itself is the first level.",
    "number_too_long": "An integer has more than 4,300 digits.",
    "number_not_finite": "NaN and Infinity are not JSON.",
    "missing": "A required member is not there; `pointer` names the object that lacks it.",
    "wrong_type": "A value is of another JSON type than it must be.",
    "empty": "A string, array or object must not be empty.",
    "unknown_key": "The request has no such member; inside conversations unknown members are kept and ignored.",
    "value_not_allowed": "A value is not one of those that are possible here.",
    "out_of_range": "A number is too small or too large.",
    "too_long": "A string or value is longer than it may be.",
    "too_many": "There are more members than there may be.",
    "duplicate": "A value is listed twice.",
    "no_container": "A conversation has neither `messages` nor `items`.",
    "both_containers": "A conversation has both `messages` and `items`, and so names no format.",
    "role_not_allowed": "A chat message has a role other than user or assistant; others need the Responses format.",
    "no_assistant_turn": "A conversation has no assistant message, so there is nothing to judge.",
    "expectations_unsupported": "A conversation carries `expectations`, which this version does not judge.",
    "unknown_judge": "There is no judge of that name.",
    "model_not_allowed": "The judge model is not one that this installation offers.",
    "url_not_allowed": "A webhook must be an absolute https URL without user information and fragment.",
    "secret_invalid": "A webhook secret is `whsec_` and the base64 of 24 to 64 bytes.",
}
"""Code → meaning."""
