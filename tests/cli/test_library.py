"""`wk library` and `wk orders`: shared as a file, checked with lines, nothing taken in by half."""

from __future__ import annotations

from tests.cli.program import Wk

SECRET = "pa55-" + "word-of-kim"


def test_a_team_shares_a_library(wk: Wk) -> None:
    team = wk.workspace / "team.yaml"
    team.write_text("entries:\n- {purpose: tuning, image: 'reg/a:1', worked: 2}\n", encoding="utf-8")
    assert wk("library", "import", "team.yaml", "--json").data == {"file": "team.yaml", "new": 1, "folded": 0}
    listed = wk("library")
    assert "tuning" in listed.out
    assert "reg/a:1" in listed.out
    assert wk("library", "--json").data[0]["worked"] == 2

    assert wk("library", "export", "mine.yaml", "--json").data["entries"] == 1
    assert wk("library", "export", "mine.yaml").code == 5
    assert wk("library", "import", "mine.yaml", "--json").data["folded"] == 1
    assert len(wk("library", "list", "--json").data) == 1

    team.write_text(
        f"entries:\n- purpose: x\n  image: b\n- purpose: y\n  proxy: http://a:{SECRET}@h:1\n",
        encoding="utf-8",
    )
    refused = wk("library", "import", "team.yaml")
    assert refused.code == 2
    assert "team.yaml:5: " in refused.err
    assert SECRET not in refused.err + refused.out
    assert len(wk("library", "list", "--json").data) == 1


def test_standing_orders_are_checked_shown_and_followed(wk: Wk) -> None:
    file = wk.home / "config" / "orders.yaml"
    assert wk("orders", "check").code == 6
    file.write_text("budgets: {restart: 1}\n", encoding="utf-8")
    wrong = wk("orders", "check")
    assert wrong.code == 2
    assert "orders.yaml:1: unknown field 'restart'; did you mean 'restarts'?" in wrong.err
    assert wk("run", "--detach", "--", "true").code == 2

    file.write_text(
        "language: zh\nstop_when:\n- {wall_s: 3600}\nwork:\n- {purpose: '*', lane: normal}\n",
        encoding="utf-8",
    )
    assert wk("orders", "check", "--json").data["orders"] == ["language", "stop_when", "work"]
    assert wk("orders", "--json").data[0]["order"] == "language"
    shown = wk("config", "orders", "--json").data
    assert [(row["name"], row["value"]) for row in shown] == [
        ("orders.language", "zh"),
        ("orders.stop_when.0.wall_s", 3600),
        ("orders.work.0.purpose", "*"),
        ("orders.work.0.lane", "normal"),
    ]
    assert shown[0]["source"].endswith("orders.yaml:1")

    ran = wk("run", "--", "echo step 1/1 loss 0.5; echo x > out.txt")
    assert ran.code == 0
    assert "已提交" in ran.out
    assert "lane normal, by your standing order" in ran.out
    (run,) = wk.board()
    kept = wk.workspace / ".watchkeeper" / "reports" / run["id"]
    assert sorted(path.name for path in kept.iterdir()) == ["report.json", "report.md"]
    assert "成功" in (kept / "report.md").read_text(encoding="utf-8")
    why = wk("why", run["id"])
    assert "by your standing order" in why.out
