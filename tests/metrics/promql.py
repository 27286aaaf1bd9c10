"""What expressions of PromQL name: metrics, and the labels that are asked of each. Read, not evaluated."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]  # its stubs are a package of their own, for two lines

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "rules.yml"
DASHBOARD = DEPLOY / "grafana" / "agentjobs.json"

_SELECTOR = re.compile(r"\b((?:agentjobs|temporal)_\w+|up\b)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')
_GROUPING = re.compile(r"\b(?:by|without)\s*\(([^)]*)\)")


@dataclass(frozen=True)
class Named:
    """What one expression names."""

    expression: str
    metrics: frozenset[str]
    matched: frozenset[tuple[str, str]]
    """(metric, label) of each matcher."""

    grouped: frozenset[str]
    """Labels that results are grouped by."""


def named_by(expression: str) -> Named:
    """What it names."""
    selectors = [(found[1], found[2] or "") for found in _SELECTOR.finditer(expression)]
    return Named(
        expression,
        metrics=frozenset(metric for metric, _ in selectors),
        matched=frozenset(
            (metric, label) for metric, within in selectors for label, _ in _MATCHER.findall(within)
        ),
        grouped=frozenset(
            label.strip()
            for within in _GROUPING.findall(expression)
            for label in within.split(",")
            if label.strip()
        ),
    )


def rules() -> list[dict[str, Any]]:
    """Every rule."""
    document = yaml.safe_load(RULES.read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    """Every panel of the dashboard."""
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


def expressions() -> list[Named]:
    """Of the rules and of the dashboard."""
    told = [rule["expr"] for rule in rules()] + [one["expr"] for panel in panels() for one in panel["targets"]]
    return [named_by(expression) for expression in told]
