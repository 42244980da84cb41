"""The validator of RO-Crates, without the network: its cache is given the one context that an archive names."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

from requests.adapters import HTTPAdapter
from requests_cache import CachedSession
from urllib3 import HTTPResponse

CONTEXT = "https://w3id.org/ro/crate/1.1/context"
# The library carries the context of version 1.3; of the terms that an archive uses these were other ones in 1.1.
OF_VERSION_1_1 = {name: f"https://bioschemas.org/{name}" for name in ("ComputationalWorkflow", "FormalParameter")}


class _Library(HTTPAdapter):
    """Answers with the context that the library carries."""

    def send(self, request, **more):
        content = json.loads((files("rocrate") / "data/ro-crate.jsonld").read_text())
        content["@context"] |= OF_VERSION_1_1
        body = io.BytesIO(json.dumps(content).encode())
        headers = {"Content-Type": "application/ld+json"}
        raw = HTTPResponse(body, status=200, headers=headers, preload_content=False, request_url=request.url)
        return self.build_response(request, raw)


def validate(archive: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """What the validator says of an archive by the profile Workflow Run Crate; its cache is made in a folder."""
    session = CachedSession(cache_name=str(folder / "cache"), backend="sqlite", expire_after=-1)
    session.mount("https://", _Library())
    assert session.get(CONTEXT).status_code == 200
    session.close()
    program = Path(sys.executable).parent / "rocrate-validator"
    options = [
        "--disable-color",
        "-y",
        "validate",
        "--offline",
        "--cache-path",
        str(folder / "cache"),
        "--no-paging",
        "-v",
    ]
    command = [str(program), *options, "-p", "workflow-run-crate", "-l", "required", str(archive)]
    return subprocess.run(command, capture_output=True, text=True, check=False)
