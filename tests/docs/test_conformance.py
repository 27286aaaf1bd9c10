"""The conformance suite is a black box: it can be run where there is nothing of ours but the suite."""

import ast
import sys

import pytest

from tests.docs.pages import CHECKOUT

SUITE = CHECKOUT / "tests" / "conformance"
ALLOWED = {"httpx", "pytest"} | sys.stdlib_module_names


@pytest.mark.parametrize("name", sorted(path.name for path in SUITE.glob("*.py")))
def test_it_imports_nothing_of_ours(name: str) -> None:
    tree = ast.parse((SUITE / name).read_text("utf-8"))
    # Within a function is where a stack of its own is started, if no other was named.
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]

    imported = {
        module
        for node in imports
        for module in (
            [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
        )
    }
    assert [module for module in imported if not _may_be(module)] == []


def _may_be(module: str) -> bool:
    return module.startswith("tests.conformance") or module.partition(".")[0] in ALLOWED
