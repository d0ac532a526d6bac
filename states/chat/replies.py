"""What the chat says to a reading, in English and Chinese side by side.

Never: a credential, the list of groups (B3), or a promise that something was done: the surface says what was done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from states.questions import Language

PHRASES: Mapping[str, tuple[str, str]] = {
    "nothing_said": ("What would you like? `help` shows what I understand.", "想做什么? 输入“帮助”看我能听懂什么。"),
    "unclear": (
        "I did not understand that. Say for example: status, logs of a run, stop RUN, or run `COMMAND`; `help` lists it all.",
        "没听懂。可以说: 状态, 某个任务的日志, 停掉 任务名, 或 跑 `命令`; “帮助”列出全部。",
    ),
    "too_long": (
        "That is long, and reads like something pasted. What should I do with it? Say it in one line.",
        "内容很长, 像是粘贴来的。要我做什么? 请用一句话说。",
    ),
    "forged": (
        "That reads like another's line, pasted; nothing in it counts as your order. What do you want?",
        "这像是粘贴来的别人的话, 不当作你的指令。你想做什么?",
    ),
    "courtesy": ("Nothing is done for that; open questions stay open.", "好的, 没有改动; 未答的问题仍然等着。"),
    "left": ("Left as it is: {job}.", "不动它: {job}。"),
    "left_all": ("Nothing is stopped, deleted or submitted.", "不停, 不删, 也不提交。"),
    "which_stop": ("Which one should be stopped: {names}?", "停哪一个: {names}?"),
    "which_delete": (
        "Whose record should be deleted? Spell its name: delete NAME. {names}",
        "删哪个任务的记录? 请写出全名: 删除 任务名。{names}",
    ),
    "did_you_mean": ("There is no run {unknown}. Did you mean {names}?", "没有任务 {unknown}。是指 {names} 吗?"),
    "confirm_stop": ("Do you want {job} stopped? Say: stop {job}", "要停掉 {job} 吗? 请说: 停掉 {job}"),
    "confirm_delete": ("Do you want the record of {job} deleted? Say: delete {job}", "要删掉 {job} 的记录吗? 请说: 删除 {job}"),
    "still_live": (
        "{job} is still live; a record is deleted only after the end. Stop it as well? Say: stop and delete {job}",
        "{job} 还没结束, 结束后才能删记录。要一起停掉吗? 请说: 停掉并删除 {job}",
    ),
    "wild": ("I act on names only, not on patterns. Which ones: {names}?", "只按名字操作, 不按通配符。哪一个: {names}?"),
    "nothing_live": ("Nothing is live, so there is nothing to stop.", "没有在跑的任务, 不需要停。"),
    "not_live": ("{job} is not live ({state}), so there is nothing to stop.", "{job} 已经不在跑 ({state}), 不需要停。"),
    "no_such_run": ("There is no run {unknown}.", "没有任务 {unknown}。"),
    "no_runs": ("There are no runs.", "没有任务。"),
    "stop_or_not": (
        "Should it be stopped now? Say: stop {job}. A condition belongs into the request (`stop_when`), or tell me when it is met.",
        "要现在停吗? 请说: 停掉 {job}。条件可写进请求 (stop_when), 或等条件满足时再告诉我。",
    ),
    "stop_unsure": ("Should {job} be stopped? Say: stop {job}; else it goes on.", "要停掉 {job} 吗? 请说: 停掉 {job}; 否则继续跑。"),
    "cleanup": (
        "What should go? I delete only records that are named (delete NAME), and stop only what is named (stop NAME). {names}",
        "要清掉什么? 只删点名的记录 (删除 任务名), 只停点名的任务 (停掉 任务名)。{names}",
    ),
    "one_thing": ("Those are several orders at once. Which first?", "一次说了几件事, 先做哪一件?"),
    "stop": ("Stopping {job}; its record stays.", "停掉 {job}; 记录保留。"),
    "delete": ("Deleting the record of {job}.", "删除 {job} 的记录。"),
    "stop+delete": ("Stopping {job}, then deleting its record.", "先停掉 {job}, 再删除记录。"),
    "run": ("Taking over: {command}", "接手运行: {command}"),
    "run_file": ("Taking over the request {command}.", "接手请求 {command}。"),
    "submit_only": ("Submitting once, nobody watches: {command}", "只提交, 不盯: {command}"),
    "predict_only": ("Only a look at what it would take; nothing is submitted: {command}", "只做预估, 不提交: {command}"),
    "again": ("Running {job} once more, as a new run.", "把 {job} 作为新任务再跑一次。"),
    "again_live": (
        "{job} is still live; running it again would make two. Stop it first, or let it go on?",
        "{job} 还在跑, 再跑就成两份了。先停掉, 还是让它继续?",
    ),
    "again_which": ("Which one should run again: {names}?", "重跑哪一个: {names}?"),
    "again_changed": (
        "Run {job} again with which change exactly? I could not read: {left}. Give the command: run `COMMAND`.",
        "{job} 要改什么再跑? 没读懂: {left}。请给出命令: 跑 `命令`。",
    ),
    "restart": (
        "Should {job} be stopped and run anew, or only continue? A restart loses what was not saved.",
        "{job} 是停掉重跑, 还是继续? 重启会丢掉没保存的进度。",
    ),
    "what_to_run": (
        "What should run, and on what? In one message: the command (run `python train.py ...`) or a request file; the image or a "
        "ready environment; where weights and data are on the cluster; GPUs if the figure is fixed; the group if not the default.",
        "要跑什么? 请在一条消息里说全: 命令 (跑 `python train.py ...`) 或请求文件; 镜像或现成环境; 权重和数据在集群上的路径; "
        "卡数 (如有要求); 不用默认分区时的分区。",
    ),
    "run_it": ("Run what? Give a command (run `python train.py`) or a request file.", "跑什么? 请给命令 (跑 `python train.py`) 或请求文件。"),
    "run_now": ("Should it be submitted now? Say: run `{command}`", "要现在提交吗? 请说: 跑 `{command}`"),
    "left_over": (" Not taken over: {left}.", " 没有采用: {left}。"),
    "answer": ("Answering {question}: {choice}.", "回答 {question}: {choice}。"),
    "answer_invalid": ("{question} has no option {choice}; it stays open. {options}", "{question} 没有选项 {choice}, 问题仍然开着。{options}"),
    "answer_late": (
        "{question} is closed: its deadline has passed and the default was carried out. To change that, order it by name.",
        "{question} 已关闭: 期限已过, 默认已执行。要改请直接点名下指令。",
    ),
    "no_question": ("No question is open. What do you mean?", "现在没有未答的问题。是指什么?"),
    "no_such_question": ("There is no such question. Open: {names}", "没有这个问题。未答的: {names}"),
    "which_question": ("Which question do you answer: {names}?", "回答哪个问题: {names}?"),
    "which_option": ("Which option? {options}", "选哪个? {options}"),
    "answer_or_order": (
        "Do you answer {names}, or order a stop? {options} Or say: stop NAME.",
        "是回答 {names}, 还是要停任务? {options} 或者说: 停掉 任务名。",
    ),
    "which_read": ("Of which run: {names}?", "哪个任务: {names}?"),
    "lines": ("How many lines? A number from 1 on; 200 unless you say otherwise.", "要多少行? 从 1 起; 不说就是 200 行。"),
    "read_bounded": ("Reading a bounded piece; `wk logs` says where more is.", "只读有限的一段。"),
    "read": ("", ""),
    "watched": ("A delegated run is watched to its end anyway, and reported: {job}.", "交给我的任务本来就会盯到结束并汇报: {job}。"),
    "watch": ("Watching {job} to its end; it is never resubmitted.", "盯着 {job} 到结束; 不会重新提交。"),
    "idle_or_free": ("Do you mean runs in the idle lane, or free capacity?", "是指闲时任务, 还是空闲的卡?"),
    "which_entry": ("Which entry of the library? `wk library list` shows them; forgetting deletes no job.", "配置库里的哪一条? `wk library list` 可查; 忘掉条目不会删任务。"),
    "what_to_remember": ("What should be remembered, and for what kind of work?", "要记什么, 用于哪类任务?"),
    "typo": ("Did you mean {word} {job}? Say it once more, please.", "是想说 {word} {job} 吗? 请再说一遍。"),
    "credential": (
        "That looks like a credential. It was neither stored nor used, and nothing was submitted. Set it by `wk key set NAME` "
        "(asked for without echo); consider the pasted one exposed.",
        "这看起来像凭证, 没有保存, 也没有使用或提交。请用 `wk key set 名字` 设置 (输入不回显); 贴出来的那个建议作废。",
    ),
    "groups": (
        "The list of groups is not shown. Leave the group out for your default, or name one you may use; `wk capacity GROUP` asks about it.",
        "分区列表不显示。不写就用默认分区, 或写出你能用的分区名; `wk capacity 分区` 可查余量。",
    ),
    "credentials_help": (
        "Set the keys by `wk key set BRAINPP_ACCESS_KEY_ID` and `wk key set BRAINPP_SECRET_ACCESS_KEY` (values are in ~/.auth on your "
        "machine), and the groups by `wk key set BRAINPP_CHARGED_GROUP`. Never paste them here.",
        "用 `wk key set BRAINPP_ACCESS_KEY_ID` 和 `wk key set BRAINPP_SECRET_ACCESS_KEY` 设置密钥 (值在你机器的 ~/.auth 下), "
        "用 `wk key set BRAINPP_CHARGED_GROUP` 设置分区。不要贴到这里。",
    ),
    "help": (
        "Ask in your own words: what is free; run `COMMAND` on 8 GPUs; submit only; status, progress; last 50 lines of RUN; events of "
        "RUN; why did RUN fail; my jobs; stop RUN; delete RUN; an option's number answers the open question; remember an image.",
        "直接说就行: 还有几张卡; 8 卡跑 `命令`; 只提交; 状态, 进度; 某任务最后 50 行日志; 事件; 为什么失败; 我的任务; 停掉 任务名; "
        "删除 任务名; 用编号回答问题; 记一下镜像。",
    ),
}  # fmt: skip


def say(key: str, language: Language, **facts: Any) -> str:
    """A phrase with its facts put in. KeyError for a phrase or a fact that is missing."""
    return PHRASES[key][language == "zh"].format_map(facts).strip()
