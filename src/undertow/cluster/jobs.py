"""Jobs and tasks: the processes that make up a cluster of servers, each by its address.

>>> jobs = Jobs.of({"worker": ["a:2222", "b:2222"], "ps": {3: "c:2222"}})
>>> [(task.job, task.index) for task in jobs.tasks], jobs.position("worker", 1)
([('ps', 3), ('worker', 0), ('worker', 1)], 2)
>>> jobs.as_dict()
{'ps': {3: 'c:2222'}, 'worker': ['a:2222', 'b:2222']}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from undertow.errors import TypeMismatch, UndertowError, brief

EXAMPLE = '{"local": ["localhost:2222", "localhost:2223"]}'
_JOB = re.compile(r"[A-Za-z][\w.-]*")
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.%\w]+\]|[\w.-]+):(\d{1,5})")
_LARGEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class Task:
    """One process of a job."""

    job: str
    index: int
    address: str  # "host:port"

    @property
    def host(self) -> str:
        """Where it runs."""
        return self.address.rpartition(":")[0]

    @property
    def port(self) -> int:
        """Where it listens there."""
        return int(self.address.rpartition(":")[2])

    def __str__(self) -> str:
        return f"/job:{self.job}/task:{self.index}"


@dataclass(frozen=True, slots=True)
class Jobs:
    """All tasks, by job and index. The position of a task is the number of the worker on it."""

    tasks: tuple[Task, ...] = ()

    @staticmethod
    def of(cluster: Any) -> Jobs:
        """From a dict of lists of addresses, or of dicts of addresses by index."""
        if not isinstance(cluster, Mapping):
            raise TypeMismatch(
                f"a cluster is a dict from jobs to addresses, not {brief(cluster)}", hint=f"write {EXAMPLE}"
            )
        tasks = [
            Task(check_job(job), check_index(job, index), check_address(job, address))
            for job, addresses in cluster.items()
            for index, address in _numbered(job, addresses).items()
        ]
        return Jobs(tuple(sorted(tasks, key=lambda task: (task.job, task.index))))

    def as_dict(self) -> dict[str, list[str] | dict[int, str]]:
        """Lists of addresses; dicts where some index is missing."""
        found: dict[str, list[str] | dict[int, str]] = {}
        for job in self.names:
            by_index = {task.index: task.address for task in self.of_job(job)}
            is_dense = list(by_index) == list(range(len(by_index)))
            found[job] = list(by_index.values()) if is_dense else by_index
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """The jobs."""
        return tuple(dict.fromkeys(task.job for task in self.tasks))

    def of_job(self, job: str) -> list[Task]:
        """The tasks of one."""
        return [task for task in self.tasks if task.job == job]

    def find(self, job: str, index: int) -> Task | None:
        """That task, if there is one."""
        return next((task for task in self.tasks if (task.job, task.index) == (job, index)), None)

    def position(self, job: str, index: int) -> int | None:
        """Where it stands among all."""
        task = self.find(job, index)
        return None if task is None else self.tasks.index(task)

    def moved(self, there: Task, address: str) -> Jobs:
        """The same, with another address of that task."""
        return Jobs(tuple(replace(task, address=address) if task == there else task for task in self.tasks))

    def choose(self, job: str | None, index: int | None) -> Task:
        """That task. A job or an index that is left out is chosen if there is only one."""
        names = self.names
        if job is None and len(names) != 1:
            raise UndertowError(
                "which job is this server of?", hint=f"say job_name; the cluster has {', '.join(names) or 'none'}"
            )
        job = names[0] if job is None else job
        tasks = self.of_job(job)
        if not tasks:
            raise UndertowError(f"the cluster has no job {job!r}", hint=f"it has {', '.join(names) or 'none'}")
        indices = ", ".join(str(task.index) for task in tasks)
        if index is None and len(tasks) != 1:
            raise UndertowError(
                f"which task of job {job!r} is this server?", hint=f"say task_index; the job has {indices}"
            )
        task = tasks[0] if index is None else self.find(job, index)
        if task is None:
            raise UndertowError(f"job {job!r} has no task {index}", hint=f"it has {indices}")
        return task


def _numbered(job: Any, addresses: Any) -> Mapping[Any, Any]:
    if isinstance(addresses, Mapping):
        return addresses
    if isinstance(addresses, (list, tuple)):
        return dict(enumerate(addresses))
    raise TypeMismatch(
        f"the tasks of job {job!r} are {brief(addresses)}",
        hint='give a list of addresses, ["localhost:2222"], or a dict, {0: "localhost:2222"}',
    )


def check_job(job: Any) -> str:
    """The name of a job: a device names it, too."""
    if not isinstance(job, str):
        raise TypeMismatch(f"the name of a job is {brief(job)}", hint=f"names are texts, as in {EXAMPLE}")
    if not _JOB.fullmatch(job):
        raise UndertowError(f"{brief(job)} is no name of a job", hint="use letters, digits and _, a letter first")
    return job


def check_index(job: str, index: Any) -> int:
    """The number of a task."""
    if isinstance(index, bool) or not isinstance(index, int):
        raise TypeMismatch(f"job {job!r} has a task {brief(index)}", hint='tasks have numbers: {0: "localhost:2222"}')
    if index < 0:
        raise UndertowError(f"job {job!r} has a task {index}", hint="the numbers of tasks begin at 0")
    return index


def check_address(job: str, address: Any) -> str:
    """Where a task listens."""
    if not isinstance(address, str):
        raise TypeMismatch(
            f"an address of job {job!r} is {brief(address)}", hint='addresses are texts: "localhost:2222"'
        )
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match[2]) > _LARGEST_PORT:
        raise UndertowError(
            f"{brief(address)} of job {job!r} is no address", hint='write host and port: "localhost:2222"'
        )
    return address
