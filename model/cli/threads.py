"""How many cores a computation takes."""

from __future__ import annotations

import os

import torch
from threadpoolctl import threadpool_limits


def one_thread_each() -> None:
    """Let every computation of torch and of numpy use one core, unless OMP_NUM_THREADS says otherwise.

    A sentence through a model of this size gives several threads nothing to share but the waiting for each other:
    beside another busy process, two threads took more than thirty times as long as one. A page's numbers are no
    different: the second thread takes the core on which the browser draws.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
        threadpool_limits(1, user_api="blas")
