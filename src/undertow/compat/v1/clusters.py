"""`tf.train.ClusterSpec` and `tf.train.Server`: processes that take part in the runs of a session.

A session on a cluster, `tf.Session("grpc://localhost:2222")`, runs what is placed on a task by a worker that this
task's server starts. Variables, and what is placed nowhere, stay in the session's own process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from undertow.cluster import server as cluster_server
from undertow.cluster.jobs import Jobs, Task, check_index, check_job
from undertow.compat.v1.place import here
from undertow.errors import GraphError, TypeMismatch, UndertowError, brief
from undertow.tracebacks import boundaries

__all__ = ["ClusterSpec", "Server", "replica_device_setter"]


class ClusterSpec:
    """The processes of a cluster: addresses of tasks by job. Lists of addresses, or dicts of addresses by task."""

    def __init__(self, cluster: Any) -> None:
        given = cluster.as_dict() if isinstance(cluster, ClusterSpec) else cluster
        try:
            self._by_job = Jobs.of(given)
        except UndertowError as fault:
            fault.span = fault.span or here()
            raise
        self._names = list(given)

    def as_dict(self) -> dict[str, list[str] | dict[int, str]]:
        """Lists of addresses by job; a dict of addresses where some number of a task is missing."""
        found = self._by_job.as_dict()
        return {job: found.get(job, []) for job in self._names}

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._names)

    def num_tasks(self, job_name: str) -> int:
        """How many tasks a job has."""
        return len(self._tasks(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The numbers of a job's tasks."""
        return [task.index for task in self._tasks(job_name)]

    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of a task."""
        for task in self._tasks(job_name):
            if task.index == task_index:
                return task.address
        raise TypeMismatch(
            f"No task with index {task_index!r} in job {job_name!r}",
            here(),
            hint=f"its tasks are {', '.join(map(str, self.task_indices(job_name))) or 'none'}",
        )

    def job_tasks(self, job_name: str) -> list[str | None]:
        """The addresses of a job by number of the task; None where there is none."""
        by_index = {task.index: task.address for task in self._tasks(job_name)}
        return [by_index.get(index) for index in range(max(by_index, default=-1) + 1)]

    def _tasks(self, job: str) -> list[Task]:
        if job not in self._names:
            raise TypeMismatch(
                f"No such job in cluster: {job!r}", here(), hint=f"its jobs are {', '.join(self._names) or 'none'}"
            )
        return self._by_job.of_job(job)

    def tasks(self) -> Jobs:
        """All tasks, in the order of workers."""
        return self._by_job

    def __bool__(self) -> bool:
        return bool(self._names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash(self._by_job)

    def __repr__(self) -> str:
        found = self.as_dict()
        return f"ClusterSpec({{{', '.join(f'{job!r}: {found[job]!r}' for job in sorted(found))}}})"

    def as_cluster_def(self) -> NoReturn:
        """There are no protocol buffers here."""
        raise GraphError("a ClusterSpec has no ClusterDef", here(), hint="use as_dict(), and json to write it down")


class Server:
    """One task of a cluster. Its process starts workers for whoever opens `Session(server.target)`, with its key."""

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: Any = None,
        start: bool = True,
    ) -> None:
        if not isinstance(server_or_cluster_def, (ClusterSpec, Mapping)):
            raise TypeMismatch(
                f"a server needs the cluster that it is of, not {brief(server_or_cluster_def)}",
                here(),
                hint='write tf.train.Server(tf.train.ClusterSpec({"local": ["localhost:2222"]}), "local", 0)',
            )
        if protocol not in (None, "grpc"):
            raise GraphError(f"a server speaks no {brief(protocol)}", here(), hint="leave protocol out")
        spec = ClusterSpec(server_or_cluster_def)
        try:
            job = None if job_name is None else check_job(job_name)
            index = None if task_index is None else check_index(job or "", task_index)
            jobs = spec.tasks()
            self._server = cluster_server.Server(jobs, jobs.choose(job, index))
            if start:
                self._server.start()
        except UndertowError as fault:
            fault.span = fault.span or here()
            raise

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        """A cluster of one server, at a free port of this machine's own address."""
        return Server({"local": ["localhost:0"]}, start=start)

    @property
    def target(self) -> str:
        """What a session on its cluster is opened with: "grpc://localhost:2222"."""
        return self._server.target

    @property
    def server_def(self) -> NoReturn:
        """There are no protocol buffers here."""
        raise GraphError("a server has no ServerDef", here(), hint="keep the ClusterSpec that it was made of")

    def start(self) -> None:
        """Listen; it does already, unless it was made with `start=False`."""
        self._server.start()

    def join(self) -> None:
        """Serve until the process is ended: Ctrl-C does that, too."""
        self._server.join()

    def close(self) -> None:
        """End its workers, and listen no more. (TensorFlow's servers end with their process.)"""
        self._server.close()


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Any = None,
    ps_strategy: Any = None,
) -> str | None:
    """What `tf.device` takes, so that operations run on `worker_device`. Variables stay in the session's process."""
    if cluster is not None:
        spec = ClusterSpec(cluster)
        job = ps_device.removeprefix("/job:").partition("/")[0]
        ps_tasks = spec.num_tasks(job) if job in spec.jobs else 0
    return worker_device if ps_tasks else None


boundaries(globals(), __all__)
