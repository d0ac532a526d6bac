"""The words of the page itself in English and Chinese; what is said about a run comes from `states/words`.

Never: a sentence about a run.
"""

from __future__ import annotations

from typing import Literal, cast

Language = Literal["en", "zh"]

WORDS: dict[str, tuple[str, str]] = {
    "board": ("Runs", "任务"),
    "inbox": ("Questions", "问题"),
    "capacity": ("Capacity", "容量"),
    "library": ("Library", "配置库"),
    "delegate": ("Delegate", "委托任务"),
    "api": ("API", "接口"),
    "skip": ("Skip to the content", "跳到正文"),
    "sections": ("Sections of this page", "本页目录"),
    "main_menu": ("Main menu", "主菜单"),
    "log_out": ("Log out", "退出"),
    "log_in": ("Log in", "登录"),
    "token": ("Your token", "你的令牌"),
    "token_help": (
        "It was shown once, when you were let in. A new one: wk people add NAME",
        "令牌只在添加时显示一次。重新生成: wk people add NAME",
    ),
    "token_wrong": ("That token is not known here.", "令牌不正确。"),
    "language": ("ZH", "EN"),
    "switch_language": ("Switch to Chinese", "切换到英文"),
    # --- board
    "find": ("Find", "查找"),
    "find_help": ("Part of a name, state or cluster", "名称、状态或集群的一部分"),
    "no_runs": ("No runs yet.", "还没有任务。"),
    "no_runs_next": (
        "Delegate one here, or in a terminal: wk run job.yaml",
        "在这里委托一个, 或在终端运行: wk run job.yaml",
    ),
    "none_found": ("Nothing here fits.", "没有符合的任务。"),
    "show_all": ("Show all", "显示全部"),
    "only_newest": ("Only the newest {count} runs are shown.", "只显示最新的 {count} 个任务。"),
    "run": ("Run", "任务"),
    "step": ("Step", "进度"),
    "left": ("Left", "剩余"),
    "phase": ("Phase", "阶段"),
    "lane": ("Lane", "通道"),
    "cluster": ("Cluster", "集群"),
    "milestone": ("Last milestone", "上次进展"),
    "loss": ("Loss", "损失"),
    "told": ("Told", "说明"),
    "ago": ("{time} ago", "{time}前"),
    # --- questions
    "no_questions": ("No open questions.", "没有待回答的问题。"),
    "no_questions_next": (
        "When a run needs a word of you, it is asked here, with a safe default.",
        "任务需要你决定时会在这里提问, 并带有安全的默认选项。",
    ),
    "default": ("default", "默认"),
    "default_in": ("Without an answer, in", "若不回答, 还有"),
    "then": ("it will be", "将执行"),
    "by_order": ("by a standing order", "按长期指令"),
    "evidence": ("Evidence", "依据"),
    "line": ("line", "行"),
    "value": ("value", "值"),
    "free_text": ("In your own words", "用自己的话回答"),
    "answer": ("Answer", "回答"),
    "answered": ("Answered", "已回答"),
    "not_answered": ("Not taken", "未采用"),
    "first": ("{name} was first.", "{name} 已先回答。"),
    "may_not_answer": ("You may read, and not answer.", "你只有查看权限。"),
    # --- a run
    "now": ("Now", "现状"),
    "log": ("Log", "日志"),
    "curves": ("Curves", "曲线"),
    "timeline": ("Timeline", "时间线"),
    "states": ("States", "状态图"),
    "decisions": ("Decisions", "决定"),
    "reports": ("Reports", "报告"),
    "artifacts": ("Files", "文件"),
    "spec": ("Spec", "规格"),
    "preflight": ("Checks", "检查"),
    "outcome": ("Outcome", "结果"),
    "next": ("Next", "下一步"),
    "concern": ("Concern", "疑点"),
    "cause": ("Cause", "原因"),
    "stop": ("Stop it", "停止"),
    "stop_reason": ("Why (said in the reports)", "原因 (写入报告)"),
    "stop_sure": ("Stopping ends the work; its record stays.", "停止会结束任务; 记录会保留。"),
    "delete": ("Remove the cluster's record", "删除集群上的记录"),
    "delete_sure": ("Spell the run's name to remove its record: {name}", "输入任务名称以删除记录: {name}"),
    "no_log": ("There is no log yet.", "还没有日志。"),
    "log_away": ("The log cannot be read now: {why}", "现在读不到日志: {why}"),
    "follows": ("new lines appear as they are written", "新的日志会自动出现"),
    "no_curves": ("No figures in its log yet.", "日志中还没有数值。"),
    "nothing_yet": ("Nothing yet.", "还没有。"),
    "no_files": ("No files were collected yet.", "还没有收集到文件。"),
    "no_checks": ("No checks were made.", "没有做检查。"),
    "when": ("When", "时间"),
    "ours": ("Watchkeeper", "Watchkeeper"),
    "native": ("The cluster's words", "集群原话"),
    "why": ("Why", "原因"),
    "rule": ("Rule", "规则"),
    "event": ("Event", "事件"),
    "became": ("Became", "结果"),
    "did": ("did", "动作"),
    "older": ("older than this run", "早于本次任务"),
    "size": ("Size", "大小"),
    "written": ("Written", "写入时间"),
    "path": ("Path", "路径"),
    "earlier": ("{count} earlier ones: wk why {run}", "更早的 {count} 条: wk why {run}"),
    "live": ("live", "实时"),
    "behind": ("This page has lost its connection and tries again.", "连接已断开, 正在重试。"),
    # --- states, short enough for a box
    "state.preflight": ("preflight", "提交前检查"),
    "state.submitting": ("submitting", "提交中"),
    "state.queued": ("queued", "排队中"),
    "state.running": ("running", "运行中"),
    "state.blocked": ("needs an answer", "等待回答"),
    "state.stopping": ("stopping", "停止中"),
    "state.collecting": ("collecting", "收集结果"),
    "state.succeeded": ("succeeded", "成功"),
    "state.failed": ("failed", "失败"),
    "state.stopped": ("stopped", "已停止"),
    "state.not_submitted": ("not submitted", "未提交"),
    "state.unknown": ("unknown", "结局不明"),
    # --- capacity, library
    "free": ("Free", "空闲"),
    "total": ("Total", "总数"),
    "gpus": ("GPUs", "GPU"),
    "cpus": ("CPU cores", "CPU 核"),
    "memory": ("Memory", "内存"),
    "block": ("Largest block on one node", "单节点最大空闲"),
    "queued": ("Queued", "排队"),
    "not_told": ("not told", "未提供"),
    "no_clusters": ("No cluster is configured.", "没有配置集群。"),
    "away": ("It does not answer: {why}", "没有回应: {why}"),
    "group": ("group", "组"),
    "purpose": ("Kind of work", "任务类型"),
    "settings": ("Set-up", "配置"),
    "worked": ("Worked", "成功"),
    "used": ("Used", "使用"),
    "last": ("Last", "最近"),
    "stale": ("stale", "已失效"),
    "no_library": ("Nothing is on record yet.", "还没有记录。"),
    "no_library_next": (
        "Each run that works leaves its image, environment and proxy here; or: wk library import team.yaml",
        "成功的任务会把镜像、环境和代理记在这里; 或导入: wk library import team.yaml",
    ),
    # --- delegating
    "command": ("Command", "命令"),
    "command_help": (
        "One line or several, run by bash in the workspace.",
        "一行或多行, 在工作区由 bash 运行。",
    ),
    "name": ("Name", "名称"),
    "gpu": ("GPUs of each replica", "每个副本的 GPU"),
    "replicas": ("Replicas", "副本数"),
    "image": ("Image", "镜像"),
    "workspace": ("Workspace", "工作区"),
    "outputs": ("Outputs that must exist at the end", "结束时必须存在的文件"),
    "outputs_help": ("Paths below the workspace, one a line.", "工作区内的路径, 每行一个。"),
    "more_yaml": ("Other fields, as YAML", "其他字段 (YAML)"),
    "more_help": (
        "As in a request file, one a line: smoke, stop_when, env, ...",
        "与请求文件相同: smoke, stop_when, env 等",
    ),
    "look": ("Look it over", "检查"),
    "findings": ("What was found", "检查结果"),
    "nothing_found": ("Nothing stands against it.", "没有发现问题。"),
    "not_looked": ("Not looked at", "没有检查"),
    "delegate_now": ("Delegate it", "委托"),
    "would_refuse": (
        "As it is, it would be refused before the submit. Mend it, and look it over again.",
        "按现在的内容会在提交前被拒绝。请修改后再次检查。",
    ),
    "more_checks": (
        "Image, size, environment and network are checked next, before anything is submitted.",
        "接下来会检查镜像、规模、环境和网络, 然后才提交。",
    ),
    "level.refuse": ("refused", "拒绝"),
    "level.ask": ("to be asked", "需要确认"),
    "level.warn": ("warning", "警告"),
    "level.note": ("note", "提示"),
    "level.fine": ("fine", "正常"),
    "level.could_not": ("could not check", "无法检查"),
    "wrong": ("That did not work", "没有成功"),
    "back": ("Back to the runs", "返回任务列表"),
}


def word(language: Language, key: str, **facts: str) -> str:
    """One phrase. KeyError for one that is not there."""
    return WORDS[key][language == "zh"].format_map(facts)


def language_of(chosen: str, accepted: str, default: Language) -> Language:
    """The reader's language: their choice, else the first of their browser's that we have, else the default."""
    if chosen in ("en", "zh"):
        return cast(Language, chosen)
    for part in accepted.lower().split(","):
        head = part.strip().partition(";")[0].partition("-")[0]
        if head in ("en", "zh"):
            return cast(Language, head)
    return default
