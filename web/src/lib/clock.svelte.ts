// The time of the page: ticks once a second while somebody looks, and is that of the server where
// the two differ by more than the second that the header is exact to.

class Clock {
  now = $state(Date.now());
}

const clock = new Clock();
let skew = 0;

function tick(): void {
  if (document.visibilityState === "visible") clock.now = Date.now() + skew;
}

setInterval(tick, 1000);
document.addEventListener("visibilitychange", tick);

export function observeServerTime(header: string | null): void {
  const told = header ? Date.parse(header) : NaN;
  if (Number.isNaN(told)) return;
  const difference = told - Date.now();
  skew = Math.abs(difference) > 2500 ? difference : 0;
}

/** Milliseconds; whoever reads it in a component is drawn anew every second. */
export function now(): number {
  return clock.now;
}
