"""Access control: host names, tokens, and cookies."""

import re

import pytest

from activemem.reporting.serve.http_server import Access, ServeError

from .conftest import get, serving

TOKEN = "a token of some length"


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::1].evil", "", "10.0.0.7"],
)
def test_a_name_that_others_can_point_here_is_refused(still, host):
    answer, text = get(still, "/", Host=host)
    assert (answer.status, text) == (
        421,
        "Expected a name of this machine in the address, such as localhost.\n",
    )


@pytest.mark.parametrize("host", ["localhost:9000", "127.0.0.1", "[::1]:8765", "LOCALHOST.", "a.localhost:1"])
def test_this_machine_is_answered_at_any_port(still, host):
    assert get(still, "/", Host=host)[0].status == 200


def test_a_token_is_asked_for_and_exchanged_for_a_cookie(store):
    with serving(store, Access(host="127.0.0.1", token=TOKEN)) as server:
        assert get(server, "/")[0].status == 401
        assert get(server, "/live.js")[0].status == 401
        assert get(server, "/?token=another+token+of+some")[0].status == 401
        answer, _ = get(server, f"/study/everything?token={TOKEN.replace(' ', '+')}&page=2")
        assert (answer.status, answer.getheader("Location")) == (303, "/study/everything?page=2")
        cookie = answer.getheader("Set-Cookie")
        assert TOKEN not in cookie
        assert cookie.endswith("; HttpOnly; Path=/; SameSite=strict")
        assert get(server, "/", Cookie=cookie.partition(";")[0])[0].status == 200
        assert get(server, "/", Cookie=cookie.partition(";")[0][:-1] + "x")[0].status == 401
        assert get(server, "/", Host="evil.example")[0].status == 401
        assert get(server, "/", Authorization=f"Bearer {TOKEN}")[0].status == 200


def test_a_redirect_stays_here(store):
    with serving(store, Access(host="127.0.0.1", token=TOKEN)) as server:
        answer, _ = get(server, f"//evil.example/?token={TOKEN.replace(' ', '+')}")
        assert re.fullmatch(r"/([^/].*)?", answer.getheader("Location"))


def test_others_are_let_in_with_a_token_alone():
    with pytest.raises(ServeError, match=r"--host 0\.0\.0\.0: .*127\.0\.0\.1.*--token"):
        Access(host="0.0.0.0")
    with pytest.raises(ServeError, match=r"token: .*16.*got 5; .* \S{24}$"):
        Access(host="0.0.0.0", token="short")
