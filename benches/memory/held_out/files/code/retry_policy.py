"""When to try a failed call again, and when to stop."""

import random
from dataclasses import dataclass


class GiveUp(Exception):
    """Raised when no attempt is left; the last failure is its cause."""


@dataclass(frozen=True)
class RetryPolicy:
    attempts: int = 5
    base_delay: float = 0.2
    cap: float = 20.0

    def delay(self, attempt: int) -> float:
        """Full jitter: anything between nothing and the exponential bound, so that a crowd of callers spreads out."""
        return random.uniform(0.0, min(self.cap, self.base_delay * 2**attempt))


RETRYABLE_STATUS = {408, 425, 429, 500, 502, 503, 504}


def is_retryable(error: Exception) -> bool:
    status = getattr(error, "status", None)
    if status is not None:
        return status in RETRYABLE_STATUS
    return isinstance(error, (TimeoutError, ConnectionError))


def call_with_retry(function, policy=RetryPolicy(), sleep=None):
    """Calls `function` until it succeeds. A Retry-After header of the answer wins over the policy's own delay."""
    import time

    sleep = sleep or time.sleep
    for attempt in range(policy.attempts):
        try:
            return function()
        except Exception as error:
            if not is_retryable(error) or attempt + 1 == policy.attempts:
                raise GiveUp(f"gave up after {attempt + 1} attempts") from error
            wait = getattr(error, "retry_after", None)
            sleep(policy.delay(attempt) if wait is None else wait)
