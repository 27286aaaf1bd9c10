"""What children see of the user's environment."""

from pathlib import Path

from agentjobs.stack.environment import CHECKOUT, for_programs, for_servers
from agentjobs.stack.options import StackOptions

DSN = "postgresql://postgres:secret@127.0.0.1:1/agentjobs"


def test_programs_get_the_users_environment_and_the_way_to_the_stack() -> None:
    options = StackOptions(
        api_port=1080, temporal_port=1233, ui_port=2233, extra_env={"AGENTJOBS_LOG_LEVEL": "DEBUG"}
    )

    environment = for_programs({"AGENTJOBS_MODEL": "offline", "AGENTJOBS_API_PORT": "9"}, options, DSN)

    assert environment["AGENTJOBS_MODEL"] == "offline"
    assert environment["AGENTJOBS_API_PORT"] == "1080"
    assert environment["AGENTJOBS_DATABASE_URL"] == DSN
    assert environment["AGENTJOBS_ENVIRONMENT"] == "dev"
    assert environment["AGENTJOBS_TEMPORAL_UI_URL"] == "http://127.0.0.1:2233"
    assert environment["TEMPORAL_ADDRESS"] == "127.0.0.1:1233"
    assert environment["AGENTJOBS_LOG_LEVEL"] == "DEBUG"


def test_settings_for_another_cluster_do_not_get_through() -> None:
    inherited = {"TEMPORAL_API_KEY": "secret", "TEMPORAL_TLS": "true", "PGSSLMODE": "require"}

    environment = for_programs(inherited, StackOptions(), DSN)

    assert not inherited.keys() & environment.keys()


def test_servers_get_no_secrets() -> None:
    assert "OPENAI_API_KEY" not in for_servers({"PATH": "/bin", "OPENAI_API_KEY": "secret"})


def test_top_level_modules_are_importable_wherever_the_user_is() -> None:
    environment = for_programs({"PYTHONPATH": "/mine"}, StackOptions(), DSN)

    assert environment["PYTHONPATH"] == f"{CHECKOUT}:/mine"
    assert Path(CHECKOUT, "agentjobs").is_dir()
