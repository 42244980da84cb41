"""A stage of the workflow carried out again on what lies there, by the installed program, writing nothing.

What it makes is compared with what the study has: the rows, the lineage in the footer, the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from palimpsest.audit.chain import Chain
from palimpsest.audit.finding import UNREADABLE, Finding, describe
from palimpsest.audit.same import difference_of_bytes
from palimpsest.core.artifact import Job
from palimpsest.core.hashing import hash_bytes


@dataclass
class Rehearsal:
    """A stage on a study: its job reads there, and what it writes is kept here.

    Args:
        chain: the study.
        rule: the stage.
        made: what was written so far, by path.
        left_out: artifacts that were not made again, with the damaged artifact that hinders it.
    """

    chain: Chain
    rule: str
    made: dict[str, bytes] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def job(self) -> Job:
        """A job of the recorded program, by name, that writes to `made`."""
        job = Job(self.chain.study, self.rule, code="", environment="", sink=self._keep)
        program = job.read_json(f"plan/code/rules/{self.rule}.json")
        job.code, job.environment = program["code"], program["environment"]
        return job

    def _keep(self, study: object, path: str, content: bytes, record: object) -> None:
        self.made[path] = content

    def compare(self, paths: list[str], hindered_by: list[str], work: Callable[[Job], None]) -> Iterator[Finding]:
        """Do the work, and compare what it made of some artifacts with what lies there.

        Args:
            paths: the artifacts, as the plan has them.
            hindered_by: damaged artifacts that the work reads; if there are any, it is left out.
            work: writes the artifacts by the job that it is given.
        """
        paths = [path for path in paths if self.chain.is_sound(path)]
        if hindered_by or not paths:
            self.left_out |= dict.fromkeys(paths, hindered_by[0] if hindered_by else "")
            return
        try:
            work(self.job())
        except UNREADABLE as error:
            yield Finding(paths[0], "it cannot be made again from its parents", got=describe(error))
            return
        for path in paths:
            yield from self._same(path)
        for path in self.made.keys() - self.chain.rows.keys():
            yield Finding(path, "it follows from what is there, and the study does not have it")
        self.made.clear()

    def _same(self, path: str) -> Iterator[Finding]:
        row = self.chain.rows[path]
        made = self.made.get(path)
        if made is None:
            yield Finding(path, f"the rule {self.rule} does not make it from what is there")
        elif hash_bytes(made) != row.sha256:
            difference = difference_of_bytes(path, row.kind, made, (self.chain.study / path).read_bytes())
            excused = difference.is_of_form and not self.chain.is_installed(f"plan/code/rules/{self.rule}.json")
            yield Finding(path, difference.reason, difference.expected, difference.got, is_remark=excused)

    def remarks(self) -> Iterator[Finding]:
        """One remark on all that was left out."""
        if self.left_out:
            path, cause = next(iter(self.left_out.items()))
            more = f" and {len(self.left_out) - 1} more of {self.rule}" if len(self.left_out) > 1 else ""
            yield Finding(path, f"this{more} could not be made again, since {cause} is damaged", is_remark=True)
