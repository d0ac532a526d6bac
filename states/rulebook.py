"""The rule book in this product's own words: rule number -> one line. The page in docs/ is made from it.

Every rule is shown by at least one scenario whose `covers:` lists its number; those in `STATIC` are proved by a
test that names the number instead, because no story can show them.

Never: a number that the table, a question or a scenario uses and that is not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

SECTIONS: Mapping[str, str] = MappingProxyType(
    {
        "A": "Scope: what was asked for, all of it, and nothing beside it",
        "B": "Credentials and billing",
        "C": "Deciding the spec",
        "D": "Preparing and staging",
        "E": "Watching",
        "F": "Wrapping up",
        "G": "Questions",
        "H": "The config library",
        "I": "Honest and safe",
    }
)
"""The first letter of a rule's number -> what its section is about."""

RULES: Mapping[str, str] = MappingProxyType(
    {
        "A1": "One read makes just the calls it needs and leaves neither a run nor a timer behind.",
        "A2": "One stop stops, one delete deletes; a stop never removes the job's record.",
        "A3": "To check on a job is one look and one report, with no timer afterwards.",
        "A4": "A delegated run goes from launch to wrap-up with nobody clicking in between.",
        "A5": "A value that was handed over is used as it is, not worked out again.",
        "A6": "When nothing is open, nobody is asked whether to go ahead.",
        "A7": "A record is deleted only when a person names the job; the machine never does it by itself.",
        "A8": "What only the person can settle is asked for at once, in one message, and then remembered.",
        "A9": "The cluster is reached through its eight operations; no request, answer or log becomes a shell line.",
        "A10": "A job that somebody else submitted can be watched to its end; it is never resubmitted, and stopped "
        "only with leave.",
        "B1": "Nothing is submitted before the cluster's keys are set; a missing one is walked through by name.",
        "B2": "The group that pays is one setting of namespace:group pairs, the first being the default.",
        "B3": "No group means the default pair; a named one brings its own; an unknown one is refused unlisted.",
        "B4": "No credential is ever stored, sent or shown; a request that carries one is refused.",
        "B5": "A credential goes into the environment of the cluster's own command and nowhere else.",
        "B6": "Nobody is asked for a credential in a chat, and one that is pasted is not kept.",
        "C1": "Long or heavy work goes to the cluster; a light step gets the advice to run it directly.",
        "C2": "What is free is read before a submit, in the person's own group unless another is named.",
        "C3": "A figure the person fixed is never shrunk; if it does not fit, the default is to queue and wait.",
        "C4": "A figure left to choose may shrink to the task's minimum; below that a person is asked.",
        "C5": "The image is the one handed over, else the library's, else asked for; never guessed.",
        "C6": "A working environment is used, else the image's own, else a complete one is built.",
        "C7": "A proxy on record is applied; having none stops nothing.",
        "C8": "The idle lane only where a preemption costs minutes; an explicit lane is kept.",
        "C9": "GPUs count per replica; a CPU job has none; several nodes are replicas.",
        "C10": "Group, priority and extra arguments stay unset unless named; mounts go through as given.",
        "C11": "A command should stay in the workspace, show progress and bound what it leaves.",
        "C12": "A package install inside the job's command is stopped before the submit.",
        "C13": "A spec that looks dear or doubtful is previewed once, then submitted for real.",
        "C14": "After a submit the person is told what was submitted, and in which lane.",
        "C15": "After an accepted submit the set-up that was used is recorded for its kind of work.",
        "D1": "What the run reads is in place before the submit, linked where it is there already.",
        "D2": "A staged set of packages is checked as a whole; half a set is refused by name.",
        "D3": "An environment that leans on the image's own packages is refused.",
        "D4": "A cheap smoke run in the same image goes before a dear one; if it fails, nothing dear is spent.",
        "D5": "Nothing ever builds, pulls or probes an image.",
        "D6": "Heavy intermediates belong in the job's own temporary space.",
        "E1": "Waiting, scheduling and pulling are a normal start, looked at again a little later each time.",
        "E2": "A log is read in bounded pieces, and a larger one only when the tail does not settle it.",
        "E3": "Trouble is named in order: scheduling, image, mounts, command, resources, the rest.",
        "E4": "A long run is watched by a timer at its own cadence, one look each time.",
        "E5": "Progress is a milestone that moved; output alone is none.",
        "E6": "Silence far beyond what is due is a hang, and is stopped.",
        "E7": "What is provably lost (a crash loop, a loss that is not a number) is stopped.",
        "E8": "The request's own stop condition is carried out.",
        "E9": "What may be wrong is asked about and keeps running; the question is taken back when it is moot.",
        "E10": "A network that is stuck is asked about; the default is to go on without it.",
        "E11": "A download that drags is asked about; the default is to stop it.",
        "E12": "Reports say phase, progress and concern; what must not be missed is set apart.",
        "E13": "A preempted run starts again from its last saved state, within its limit, and says what was lost.",
        "F1": "At the end: one last bounded log read, the outputs, and for a failure its cause with evidence.",
        "F2": "The last report has the outcome, the artifacts and the next safe action.",
        "F3": "What worked, or what to avoid, is recorded.",
        "F4": "Only this run's own end is its outcome.",
        "F5": "A remembered set-up that turns out wrong is said, marked, and no longer used.",
        "F6": "A job that was stopped from outside or has vanished ends as just that, and is not sent again.",
        "F7": "What the watch itself made on the way is removed or named.",
        "G1": "A question has its reason, options, a safe default and a deadline; key, number or value answers it.",
        "G2": "An answer resumes the work at once; without one the default is carried out and said.",
        "G3": "While a question is open, whatever does not hang on it goes on.",
        "G4": "A late, second or unfitting answer is refused with what happened already.",
        "G5": "One cause, one question.",
        "G6": "A fact given in an answer is recorded and not asked for again.",
        "G7": "The safe defaults: no image, no submit; build; without the network; stop the download; queue; keep.",
        "H1": "An entry says what was used for which kind of work; choices stay apart, repeats are counted.",
        "H2": "The library is asked before the person, and the report says what it gave.",
        "H3": "A remembered value is a hint; when it fails it counts as missing.",
        "H4": "No credential in the library.",
        "I1": "One run never has two live jobs unnoticed, whatever is lost, killed or repeated.",
        "I2": "Nothing that a log says can stop, delete, send, answer or reveal anything.",
        "I3": "Without a model everything works; what rules cannot settle counts as ambiguous.",
        "I4": "A reading whose quotation does not stand in the log is void.",
        "I5": "Every decision can be explained: event, rule, evidence, action.",
    }
)
"""Rule number -> what it asks for, in order."""

STATIC = frozenset({"A9", "B5", "D5"})
"""Rules that a test proves by the shape of the code, since no story can show that something is impossible."""
