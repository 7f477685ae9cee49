// Calls that come too often, held back in two ways.

/** Waits until nothing has come for `quiet` milliseconds, then calls once with the last arguments. For search boxes. */
export function debounce<A extends unknown[]>(call: (...args: A) => void, quiet: number) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const held = (...args: A) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...args), quiet);
  };
  held.cancel = () => clearTimeout(timer);
  return held;
}

/** Calls at once, then at most every `gap` milliseconds, and once more at the end if anything was held back. For scrolling. */
export function throttle<A extends unknown[]>(call: (...args: A) => void, gap: number) {
  let last = -Infinity;
  let trailing: ReturnType<typeof setTimeout> | undefined;
  return (...args: A) => {
    const now = performance.now();
    clearTimeout(trailing);
    if (now - last >= gap) {
      last = now;
      call(...args);
    } else {
      trailing = setTimeout(() => {
        last = performance.now();
        call(...args);
      }, gap - (now - last));
    }
  };
}

/** Shares one running request between all who ask for the same key, so that ten widgets cause one fetch. */
export class SingleFlight<T> {
  private running = new Map<string, Promise<T>>();

  run(key: string, start: () => Promise<T>): Promise<T> {
    const known = this.running.get(key);
    if (known) return known;
    const promise = start().finally(() => this.running.delete(key));
    this.running.set(key, promise);
    return promise;
  }
}
