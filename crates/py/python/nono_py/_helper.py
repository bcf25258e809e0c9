"""Started by a supervised run as a process of its own: ``_helper.py NATIVE_MODULE network|webhook``.

It runs without site packages and without an environment, loads the native module and nothing else, and is confined by
it before anything from outside reaches it. What goes wrong the supervisor hears over the socket.
"""

import os
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location


def main(native: str, what: str) -> int:
    spec = spec_from_file_location("_nono_py", native, loader=ExtensionFileLoader("_nono_py", native))
    if spec is None or spec.loader is None:
        return 1
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    serve = {"network": module._serve_network, "webhook": module._serve_webhook}[what]
    try:
        serve()
    except RuntimeError:
        return 1
    return 0


if __name__ == "__main__":
    # The interpreter's shutdown may need files that the sandbox has closed.
    os._exit(main(sys.argv[1], sys.argv[2]))
