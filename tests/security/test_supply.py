"""S35: what is installed is what was tested."""

import re
import tomllib

from tests.served import CHECKOUT

# Their behaviour is part of ours: limits, cancellation, what a default is.
PINNED = {"temporalio", "pydantic-ai-slim"}


def test_every_locked_package_has_its_hashes() -> None:
    locks = [path.read_text("utf-8") for path in sorted(CHECKOUT.glob("requirements*.lock"))]

    for lock in locks:
        packages = re.split(r"^(?=[a-z0-9])", lock, flags=re.MULTILINE | re.IGNORECASE)[1:]
        assert packages
        assert [one.splitlines()[0] for one in packages if "==" not in one or "--hash=sha256:" not in one] == []


def test_what_ours_depends_on_closely_is_pinned_exactly() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]

    exact = {one.split("==")[0] for one in project["dependencies"] if "==" in one}

    assert exact >= PINNED
