from importlib import resources

from agentjobs.demo import load_requests
from agentjobs.domain.job import TEXT_LIMIT


def test_there_are_ten_requests_with_ids_of_their_own() -> None:
    ids = [request.id for request in load_requests()]

    assert len(ids) == len(set(ids)) == 10


def test_they_come_in_six_languages_and_more_and_in_every_kind() -> None:
    requests = load_requests()

    assert len({request.lang for request in requests}) >= 6
    assert {request.kind for request in requests} == {"support", "complaint", "incident"}


def test_each_is_short_enough_to_be_read_in_a_terminal_and_accepted_by_the_api() -> None:
    assert all(0 < len(request.text.strip()) <= 1_200 <= TEXT_LIMIT for request in load_requests())


def test_each_record_carries_its_source_and_its_licence() -> None:
    assert all(request.source and request.licence for request in load_requests())


def test_the_provenance_page_names_every_record() -> None:
    page = resources.files("agentjobs.demo").joinpath("PROVENANCE.md").read_text("utf-8")

    assert [request.id for request in load_requests() if f"`{request.id}`" not in page] == []


def test_no_record_shows_an_e_mail_address() -> None:
    assert [request.id for request in load_requests() if "@" in request.text] == []
