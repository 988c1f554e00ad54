from __future__ import annotations

import subprocess
import sys


def test_the_api_loads_neither_torch_nor_workers():
    program = (
        "import sys, api.app; "
        "print([name for name in ('torch', 'transformers', 'numpy', 'PIL', 'diffusers', "
        "'workers.engine', 'workers.images', 'workers.models', 'workers.launcher') "
        "if name in sys.modules])"
    )

    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert result.stdout == "[]\n"
