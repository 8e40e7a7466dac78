"""Generates `restante.generated` when the wheel is built, so that it is never out of date.

It reads the OpenAPI document that `npm run build:python` has written, which also has the version.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parents[2]

DOCUMENT = ROOT / "dist" / "python" / "openapi.json"

# It knows no images and no lines of JSON. The formatter, which it wants to run, is not there.
CONFIGURATION = Path(__file__).with_name("generator.json")


def document():
    """The OpenAPI document of the service."""
    if not DOCUMENT.exists():
        raise SystemExit(
            f"{DOCUMENT} is missing, from which the client is generated: "
            "run `npm run build:python` in the repository, which writes it"
        )
    return json.loads(DOCUMENT.read_text(encoding="utf-8"))


class GeneratedClient(BuildHookInterface):
    """Adds the generated package to the wheel."""

    def initialize(self, version, build_data):
        document()
        self.folder = tempfile.TemporaryDirectory()
        generated = Path(self.folder.name, "generated")
        subprocess.run(
            [
                *(sys.executable, "-m", "openapi_python_client", "generate"),
                *("--path", str(DOCUMENT)),
                *("--config", str(CONFIGURATION)),
                *("--meta", "none"),
                *("--output-path", str(generated)),
            ],
            check=True,
            # The build's own packages are not those of the environment that pip runs in.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        build_data["force_include"][str(generated)] = "restante/generated"

    def finalize(self, version, build_data, artifact_path):
        self.folder.cleanup()
