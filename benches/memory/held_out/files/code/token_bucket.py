"""Rate limits for callers of the public interface: a bucket of tokens for each key."""

import threading
import time


class TokenBucket:
    """Refills at `rate` tokens a second, up to `burst`. Asking for more than `burst` can never succeed."""

    def __init__(self, rate: float, burst: float, clock=time.monotonic):
        self.rate = rate
        self.burst = burst
        self._tokens = burst
        self._clock = clock
        self._updated = clock()
        self._lock = threading.Lock()

    def try_acquire(self, amount: float = 1.0) -> bool:
        with self._lock:
            now = self._clock()
            self._tokens = min(self.burst, self._tokens + (now - self._updated) * self.rate)
            self._updated = now
            if self._tokens < amount:
                return False
            self._tokens -= amount
            return True


class Limiter:
    """One bucket per key. Buckets that are full again are dropped, or a scan over random keys would fill the memory."""

    MAX_BUCKETS = 50_000

    def __init__(self, rate=5.0, burst=20.0):
        self._settings = (rate, burst)
        self._buckets = {}

    def allow(self, key: str) -> bool:
        if len(self._buckets) >= self.MAX_BUCKETS:
            self._evict_full()
        bucket = self._buckets.setdefault(key, TokenBucket(*self._settings))
        return bucket.try_acquire()

    def _evict_full(self):
        self._buckets = {key: bucket for key, bucket in self._buckets.items() if bucket._tokens < bucket.burst}
