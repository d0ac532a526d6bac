"""What a request may state as an asset, and how it is read."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from states.assets import Asset, Hub, PackageSet, mount_source, mount_target


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("data/a.idx", {"path": "data/a.idx"}),
        ("/share/weights/a.pt", {"path": "/share/weights/a.pt"}),
        ("pool://lab/corpus:/mnt/corpus", {"mount": "pool://lab/corpus:/mnt/corpus"}),
        ("claim-a:/data:ro", {"mount": "claim-a:/data:ro"}),
        ("hf:org/name", {"hub": "org/name"}),
    ],
)
def test_a_short_text_says_what_it_is_by_its_shape(text: str, form: dict[str, str]) -> None:
    assert Asset.model_validate(text) == Asset(**form)


def test_a_hub_name_has_a_kind_and_a_revision() -> None:
    assert Asset(hub="org/name").repository() == Hub(kind="models", name="org/name")
    data = Asset(hub="datasets/org/name@v2").repository()
    assert data == Hub(kind="datasets", name="org/name", revision="v2")
    assert data.folder == "datasets--org--name"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({}, "exactly one of"),
        ({"path": "a", "hub": "o/n"}, "exactly one of"),
        ({"hub": "o/n; rm -rf x"}, "no hub name"),
        ("https://host.example/w.bin", "needs `to`"),
        ({"url": "https://me:secret@host.example/w.bin", "to": "w.bin"}, "without a user name"),
        ({"url": "file:///etc/passwd", "to": "w.bin"}, r"http\(s\)"),
        ({"url": "https://host.example/w.bin", "to": "../w.bin"}, "below the workspace"),
        ({"url": "https://host.example/w.bin", "to": "/etc/w.bin"}, "below the workspace"),
        ({"url": "https://host.example/w.bin", "to": "a/../../w.bin"}, "below the workspace"),
        ({"path": "/a", "to": "."}, "below the workspace"),
        ({"url": "https://host.example/w.bin", "to": "w", "sha256": "abc"}, "64 hex digits"),
        ({"hub": "o/n", "to": "x"}, "`to` is for"),
    ],
)
def test_what_cannot_be_meant_is_refused(wrong: object, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Asset.model_validate(wrong)


def test_a_name_in_a_report_has_no_query() -> None:
    assert Asset(url="https://host.example/w.bin?sig=abc", to="w.bin").name == "https://host.example/w.bin"


@pytest.mark.parametrize(
    ("mount", "source", "target"),
    [
        ("pool://lab/corpus:/mnt/corpus", "", "/mnt/corpus"),
        ("/share/a:/data:ro", "/share/a", "/data"),
        ("host:/share/a:/data", "/share/a", "/data"),
        ("/share/a", "/share/a", "/share/a"),
    ],
)
def test_the_two_sides_of_a_mount(mount: str, source: str, target: str) -> None:
    assert (mount_source(mount), mount_target(mount)) == (source, target)


@pytest.mark.parametrize("wrong", [{"python": "3"}, {"python": "py311"}, {"platform": "windows"}])
def test_a_target_that_nobody_could_read_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        PackageSet(**wrong)
