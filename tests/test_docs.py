"""Docs that can lie are checked: generated pages are fresh, links lead somewhere, every page is reached.

Never: repair a page (`make docs` does).
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def _generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATE = _generate()


@pytest.mark.parametrize("name", sorted(GENERATE.PAGES))
def test_a_generated_page_is_fresh(name: str) -> None:
    page = ROOT / "docs" / name
    assert page.read_text() == GENERATE.rendered(name), f"docs/{name} is stale: run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    gone = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not gone


def test_every_page_is_reached_from_the_readme() -> None:
    seen, frontier = set(), [ROOT / "README.md"]
    while frontier:
        page = frontier.pop()
        seen.add(page)
        for target in re.findall(r"\]\(([^)#\s]+\.md)", page.read_text()):
            found = (page.parent / target).resolve()
            if found.exists() and found not in seen:
                frontier.append(found)
    assert not sorted(
        str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md") if p.resolve() not in seen
    )


def test_the_readme_names_real_commands() -> None:
    import typer

    from agent.cli import app

    known = set(typer.main.get_command(app).commands)
    named = set(re.findall(r"\bwk ([a-z]+)", (ROOT / "README.md").read_text()))
    assert named <= known
    make = (ROOT / "Makefile").read_text()
    for target in re.findall(r"\bmake ([a-z-]+)", (ROOT / "README.md").read_text()):
        assert re.search(rf"^{target}:", make, re.MULTILINE)
