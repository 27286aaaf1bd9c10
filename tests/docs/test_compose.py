"""docker-compose.yml and the Dockerfile, as far as they can be looked at without an engine."""

import importlib.util
import re
import shlex
from datetime import timedelta
from typing import Any

import pytest
from compose_spec import PyCompose

import agentjobs
from agentjobs.settings import Settings
from tests.docs.pages import CHECKOUT
from worker import GRACE

TEXT = (CHECKOUT / "docker-compose.yml").read_text("utf-8")
DOCKERFILE = (CHECKOUT / "Dockerfile").read_text("utf-8")
OURS = ("migrate", "api", "relay", "worker")
ONE_SHOT = ("migrate", "temporal-schema", "temporal-namespace")


def _compose() -> dict[str, Any]:
    compose = PyCompose.from_yaml(TEXT)
    compose.validate()
    compose.to_spec()
    whole: dict[str, Any] = compose.to_dict()
    return whole


COMPOSE = _compose()
SERVICES: dict[str, Any] = COMPOSE["services"]


def test_all_services_are_there() -> None:
    assert set(SERVICES) == {*OURS, *ONE_SHOT, "postgres", "temporal", "temporal-ui"}


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_carries_a_tag_that_stays(service: str) -> None:
    _, _, tag = SERVICES[service]["image"].rpartition(":")

    assert re.fullmatch(r"[\w.-]*\d[\w.-]*", tag)


@pytest.mark.parametrize("service", OURS)
def test_our_images_are_of_this_version(service: str) -> None:
    assert SERVICES[service]["image"] == f"agentjobs:{agentjobs.__version__}"


@pytest.mark.parametrize("service", OURS)
def test_a_command_names_a_program_that_exists(service: str) -> None:
    python, *rest = SERVICES[service]["command"]

    assert python == "python"
    if rest[0] == "-m":
        assert importlib.util.find_spec(f"{rest[1]}.__main__")
    else:
        assert (CHECKOUT / rest[0]).is_file()


@pytest.mark.parametrize("service", SERVICES)
def test_a_port_is_published_on_this_machine_only(service: str) -> None:
    assert [port for port in SERVICES[service].get("ports", ()) if not port.startswith("127.0.0.1:")] == []


@pytest.mark.parametrize("service", SERVICES)
def test_what_serves_is_started_again_and_what_ends_is_not(service: str) -> None:
    restart = SERVICES[service]["restart"]

    assert restart in {"no", "on-failure"} if service in ONE_SHOT else restart == "unless-stopped"


@pytest.mark.parametrize("service", ["postgres", "temporal", "temporal-ui", "api"])
def test_what_can_be_asked_for_its_health_is(service: str) -> None:
    assert SERVICES[service]["healthcheck"]["test"][0] == "CMD"


def test_whoever_is_waited_for_in_health_has_a_health() -> None:
    for name, service in SERVICES.items():
        for other, wanted in service.get("depends_on", {}).items():
            ends = wanted["condition"] == "service_completed_successfully"
            assert other in ONE_SHOT if ends else "healthcheck" in SERVICES[other], (name, other)


def test_no_secret_stands_in_the_file() -> None:
    given = re.findall(r"^\s+\w*(?:PASSWORD|PWD|SECRET|TOKEN|API_KEY)\w*: (.+)$", TEXT, re.MULTILINE)

    assert given
    assert [value for value in given if not re.fullmatch(r"\$\{\w+:\?[^}]+\}", value)] == []
    assert re.findall(r"://\w+:(?!\$\{\w+:\?)", TEXT) == []


@pytest.mark.parametrize("service", OURS)
def test_every_setting_that_is_given_exists(service: str) -> None:
    known = {f"AGENTJOBS_{field.upper()}" for field in Settings.model_fields}
    given = {name for name in SERVICES[service]["environment"] if name.startswith("AGENTJOBS_")}

    assert given - known == set()
    assert SERVICES[service]["environment"]["AGENTJOBS_ENVIRONMENT"] == "production"


@pytest.mark.parametrize("service", OURS)
def test_our_programs_may_do_little(service: str) -> None:
    program = SERVICES[service]

    assert program["read_only"] is True
    assert program["cap_drop"] == ["ALL"]
    assert program["security_opt"] == ["no-new-privileges:true"]


def test_a_worker_is_given_longer_than_its_own_grace() -> None:
    given = timedelta(seconds=_seconds(SERVICES["worker"]["stop_grace_period"]))

    assert given > GRACE


def _seconds(duration: str) -> float:
    return sum(float(number) * {"m": 60, "s": 1}[unit] for number, unit in re.findall(r"(\d+)([ms])", duration))


def test_the_scripts_are_shell() -> None:
    scripts = [config["content"] for name, config in COMPOSE["configs"].items() if name != "temporal-settings"]

    for script in scripts:
        assert re.findall(r"(?<!\$)\$(?!\$)", script) == [], "a single $ is replaced by Compose, not by the shell"
        assert shlex.split(script.replace("$$", "$"), comments=True)


def test_the_image_is_made_of_locked_packages_and_runs_as_nobody_special() -> None:
    users = re.findall(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE)

    assert "--require-hashes -r requirements.lock" in DOCKERFILE
    assert users
    assert users[-1] not in {"0", "root"}
    assert [image for image in re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) if ":" not in image] == []


def test_the_image_gets_what_it_copies_and_nothing_else() -> None:
    kept = re.findall(r"^!(\S+)$", (CHECKOUT / ".dockerignore").read_text("utf-8"), re.MULTILINE)
    copied = re.findall(r"^COPY (?!--)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    names = {name for line in copied for name in line.split()}

    assert names == set(kept)
    assert [name for name in names if not (CHECKOUT / name).exists()] == []
