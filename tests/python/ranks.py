"""Real ranks for tests: Gloo processes that start once and run one function after the other."""

from __future__ import annotations

import multiprocessing
import os
import queue
import sys
import tempfile
import time
import traceback
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "resources" / "python"))

LONGEST_S = 300
alone = None  # the group of this rank, in the rank's process


def _serve(rank, count, store, tasks, answers):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=count)
    # All ranks make all groups, because group names are numbered by creation.
    global alone
    alone = dist.new_subgroups(1)[0]
    sizes = sorted({2, min(3, count), count})
    groups = {n: dist.group.WORLD if n == count else dist.new_group(list(range(n))) for n in sizes}
    while (task := tasks.get()) is not None:
        function, ranks, arguments = task
        if rank >= ranks:
            continue
        try:
            answers.put((rank, function(groups[ranks], *arguments), None))
        except BaseException:
            answers.put((rank, None, traceback.format_exc()))
    dist.destroy_process_group()


class Ranks:
    """`count` processes; `run(function, 2, x)` calls function(group of the first two, x) on them."""

    def __init__(self, count=4):
        self._count = count
        self._start()

    def _start(self):
        # Ranks are forks of a server that has imported what takes seconds to import.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["torch.distributed", "transformers", "cleave_torch"])
        self._folder = tempfile.TemporaryDirectory(prefix="cleave-test-")
        self._answers = context.Queue()
        self._tasks = [context.Queue() for _ in range(self._count)]
        store = os.path.join(self._folder.name, "store")
        self._processes = [
            context.Process(
                target=_serve, args=(rank, self._count, store, self._tasks[rank], self._answers), daemon=True
            )
            for rank in range(self._count)
        ]
        for process in self._processes:
            process.start()

    def run(self, function, ranks, *arguments):
        """The ranks' results in order; AssertionError with the message of a rank that fails."""
        for tasks in self._tasks:
            tasks.put((function, ranks, arguments))
        found, end = {}, time.monotonic() + LONGEST_S
        while len(found) < ranks:
            try:
                rank, answer, error = self._answers.get(timeout=1)
            except queue.Empty:
                if time.monotonic() > end or not all(process.is_alive() for process in self._processes):
                    self._start_again()
                    raise AssertionError(f"only ranks {sorted(found)} of {ranks} answered") from None
                continue
            if error is not None:
                self._start_again()
                raise AssertionError(f"rank {rank}: {error}")
            found[rank] = answer
        return [found[rank] for rank in range(ranks)]

    def _start_again(self):
        """If one rank fails, others may wait for it."""
        for process in self._processes:
            process.kill()
        self.close()
        self._start()

    def close(self):
        for tasks in self._tasks:
            tasks.put(None)
        for process in self._processes:
            process.join(10)
            if process.is_alive():
                process.kill()
        self._folder.cleanup()


class OnRanks(unittest.TestCase):
    """Tests that share `RANKS` ranks, started once: `self.ranks`."""

    RANKS = 4

    @classmethod
    def setUpClass(cls):
        cls.ranks = Ranks(cls.RANKS)

    @classmethod
    def tearDownClass(cls):
        cls.ranks.close()
