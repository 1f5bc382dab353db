"""The far end of `benchmarks._processes.Worker`: prepares one measurement and repeats it on demand.

    python -m benchmarks._worker module:function '{"argument": 1}'

The function prepares (imports, compiles, warms up) and returns a function without arguments. Each
line on the standard input calls that function once; its answer goes out as one line of JSON.
"""

import importlib
import json
import sys


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # libraries may print; the answers stay clean
    module, _, function = sys.argv[1].partition(":")
    measure = getattr(importlib.import_module(module), function)(**json.loads(sys.argv[2]))
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    print("ready", file=answers, flush=True)
    for _ in sys.stdin:
        print(json.dumps(measure()), file=answers, flush=True)


if __name__ == "__main__":
    main()
