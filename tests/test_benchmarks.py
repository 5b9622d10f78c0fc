"""A benchmark that cannot run proves nothing: its servers take what they are to be measured with."""

import json
from collections.abc import Callable

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from benchmarks.ingest_servers import KEY, SUBMIT, naive, ours

BODY = json.dumps({"conversations": [{"messages": [{"role": "assistant", "content": "hi"}]}]})


@pytest.mark.parametrize(("name", "make"), [("ours", ours), ("naive", naive)])
def test_a_measured_server_accepts_a_body(name: str, make: Callable[[], FastAPI]) -> None:
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    with TestClient(make()) as client:
        assert client.post(SUBMIT[name], content=BODY, headers=headers).status_code == 202
