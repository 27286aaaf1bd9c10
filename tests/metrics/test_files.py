"""The files for Prometheus and Grafana: taken by their own tool where it is there, and complete in any case."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.metrics.promql import DEPLOY, expressions, named_by, panels, rules

PROMTOOL = shutil.which("promtool")
PROMETHEUS = DEPLOY / "prometheus"
PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_an_expression_is_read_for_what_it_names() -> None:
    named = named_by('sum by (le, kind) (rate(agentjobs_x_bucket{kind="model",outcome!~"a|b"}[5m])) > agentjobs_y')

    assert named.metrics == {"agentjobs_x_bucket", "agentjobs_y"}
    assert named.matched == {("agentjobs_x_bucket", "kind"), ("agentjobs_x_bucket", "outcome")}
    assert named.grouped == {"le", "kind"}


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not here (Debian: package `prometheus`)")
@pytest.mark.parametrize(
    "command",
    [
        ("check", "rules", "rules.yml"),
        ("test", "rules", "rules_test.yml"),
        ("check", "config", "--syntax-only", "prometheus.yml"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_promtool_takes_the_files(command: tuple[str, ...]) -> None:
    ended = subprocess.run([str(PROMTOOL), *command], cwd=PROMETHEUS, capture_output=True, text=True, timeout=60)

    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_every_rule_says_how_bad_it_is_and_what_is_the_matter() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in {"warning", "critical"}, rule["alert"]
        assert rule["annotations"]["summary"], rule["alert"]
        assert named_by(rule["expr"]).metrics, rule["alert"]
        used = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        assert used <= named_by(rule["expr"]).grouped | {"job", "instance"}, rule["alert"]


def test_every_panel_has_a_title_of_its_own_and_a_place() -> None:
    titles = [panel["title"] for panel in panels()]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels()]

    assert len(set(titles)) == len(titles) == len(set(places))
    assert all(panel["targets"] for panel in panels())


def test_every_metric_and_every_alert_stands_in_the_documentation() -> None:
    page = PAGE.read_text()
    metrics = {re.sub("_(bucket|count|sum)$", "", metric) for one in expressions() for metric in one.metrics} - {
        "up"
    }

    assert {metric for metric in metrics if f"`{metric}`" not in page} == set()
    assert {rule["alert"] for rule in rules() if rule["alert"] not in page} == set()
