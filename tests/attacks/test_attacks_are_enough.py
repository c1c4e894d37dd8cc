"""How many attacks are there? Each is a request, message or statement that is refused or changes nothing.

Each stands as an entry of a list that a test tries entry by entry: the lists named ATTACKS, and those named here.
Combinations of parameters, generated statements and attacks that are written as a whole test are not counted.
"""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
ALSO = {
    "attacks/test_http.py": ("SMUGGLED",),
    "attacks/test_nats.py": ("BEYOND", "FORGED"),
}
"""Lists of attacks that have a name of their own."""
OF_ANALYSTS = "analysts/"


def entries(value: ast.expr | None) -> int:
    """How many entries a literal has; one that is unpacked from a comprehension counts as one."""
    if isinstance(value, ast.Dict):
        return len(value.keys)
    return len(value.elts) if isinstance(value, ast.List | ast.Tuple | ast.Set) else 0


def declared() -> dict[str, int]:
    """The attacks of each test file."""
    found: dict[str, int] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        name = file.relative_to(TESTS).as_posix()
        for node in ast.parse(file.read_text("utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            target = node.target if isinstance(node, ast.AnnAssign) else targets[0] if targets else None
            if isinstance(target, ast.Name) and target.id in ("ATTACKS", *ALSO.get(name, ())):
                assert isinstance(node, ast.Assign | ast.AnnAssign)
                count = entries(node.value)
                assert count, f"{name} declares {target.id} so that nobody can count it"
                found[name] = found.get(name, 0) + count
    return found


def test_the_attacks_of_the_suite_are_150_at_least_and_as_many_without_those_of_analysts() -> None:
    attacks = declared()
    assert set(ALSO) <= set(attacks)
    assert len(attacks) >= 7, attacks
    assert sum(attacks.values()) >= 300, attacks
    assert sum(count for name, count in attacks.items() if not name.startswith(OF_ANALYSTS)) >= 150, attacks
