"""docs/http.md says what holds."""

import re
from pathlib import Path

from backburner.model.errors import SPELLINGS
from backburner.serve.app import api

REPOSITORY = Path(__file__).resolve().parent.parent.parent
PAGE = (REPOSITORY / "docs" / "http.md").read_text(encoding="utf-8")


def test_every_code_that_only_the_server_has_is_on_the_page() -> None:
    sources = (REPOSITORY / "src" / "backburner" / "serve").glob("*.py")
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    codes = set(re.findall(r'HTTPStatus\.\w+,\s+"(\w+)"', text)) - set(SPELLINGS)
    assert len(codes) >= 8
    assert [code for code in sorted(codes) if f"`{code}`" not in PAGE] == []


def test_every_address_on_the_page_is_one() -> None:
    known = {*api().openapi()["paths"], "/openapi.json"}
    named = set(re.findall(r"`(?:GET |POST )?(/(?:v1|healthz|metrics|openapi)[\w/{}.]*)`", PAGE))
    assert named
    assert [address for address in sorted(named) if address not in known] == []
