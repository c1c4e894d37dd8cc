"""Write the golden sample of each event that has none yet: its example, as the program encodes it.

`python -m tests.ledger.new_samples`. A sample that is there is never changed.
"""

from __future__ import annotations

import json
import sys

import orjson

from ledger.events import FACTS
from ledger.vocabulary.examples import EXAMPLES
from ledger.wire.envelope import encode
from tests.ledger.test_golden import GOLDEN


def main() -> None:
    """Write the missing samples and print their names."""
    for name, example in EXAMPLES.items():
        path = GOLDEN / f"{name}.{FACTS[name].version}.json"
        if not path.exists():
            document = orjson.loads(encode(example))
            path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            sys.stdout.write(f"{path.name}\n")


if __name__ == "__main__":
    main()
