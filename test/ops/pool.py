# SPDX-License-Identifier: Apache-2.0
"""Worker processes that may crash or hang: what they were doing then counts as failed."""

import multiprocessing
import os
import tempfile
import time
from multiprocessing.connection import wait

_context = multiprocessing.get_context("fork")


class Worker:
    def __init__(self, start, work):
        self.errors = tempfile.TemporaryFile()
        self.pipe, other = _context.Pipe()
        self.process = _context.Process(target=self._serve, args=(other, start, work), daemon=True)
        self.process.start()
        other.close()
        self.job = None

    def _serve(self, pipe, start, work):
        self.pipe.close()
        os.dup2(self.errors.fileno(), 2)
        start()
        while True:
            job = pipe.recv()
            os.ftruncate(2, 0)
            os.lseek(2, 0, os.SEEK_SET)
            pipe.send(work(job))

    def give(self, job, limit_s):
        self.job, self.started = job, time.monotonic()
        self.deadline = self.started + limit_s
        self.pipe.send(job)

    def result(self):
        """What the job returned, or why it did not."""
        if self.pipe.poll():
            try:
                return self.pipe.recv(), None
            except EOFError:
                return None, self._death()
        if time.monotonic() > self.deadline:
            self.process.kill()
            self.process.join()
            return None, "hung: killed at its time limit"
        return None, None

    def _death(self):
        self.process.join()
        self.errors.seek(0)
        last_words = " ".join(self.errors.read().decode(errors="replace").split())[:400]
        return f"crashed: exit code {self.process.exitcode} {last_words}"

    def stop(self):
        self.process.kill()
        self.process.join()


def _run_here(jobs, start, work):
    start()
    for job in jobs:
        started = time.monotonic()
        yield job, work(job), None, time.monotonic() - started


def run(jobs, *, start, work, num_workers, limit_s):
    """Yields (job, result, failure, seconds) as jobs end; `start` is called once in each worker. No workers: in this process."""
    if num_workers == 0:
        yield from _run_here(jobs, start, work)
        return
    jobs = list(jobs)[::-1]
    workers = [Worker(start, work) for _ in range(min(num_workers, len(jobs)))]
    try:
        for worker in workers:
            worker.give(jobs.pop(), limit_s)
        while workers:
            wait([worker.pipe for worker in workers], timeout=1)
            for index, worker in enumerate(list(workers)):
                result, failure = worker.result()
                if result is None and failure is None:
                    continue
                yield worker.job, result, failure, time.monotonic() - worker.started
                if failure is not None:
                    workers[workers.index(worker)] = replacement = Worker(start, work)
                    worker = replacement
                if jobs:
                    worker.give(jobs.pop(), limit_s)
                else:
                    worker.stop()
                    workers.remove(worker)
    finally:
        for worker in workers:
            worker.stop()
