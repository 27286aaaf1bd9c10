"""RQ's worker pool over the benchmark's queue: python -m benchmarks.peers.rq_pool NUMBER"""
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import os
import sys

from redis import Redis
from rq.worker_pool import WorkerPool

if __name__ == "__main__":
    redis = Redis.from_url(os.environ["BENCH_REDIS_URL"])
    WorkerPool([os.environ["BENCH_QUEUE"]], connection=redis, num_workers=int(sys.argv[1])).start()
