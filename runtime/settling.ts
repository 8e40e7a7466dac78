/** Waits for what is under way around actors to end, by the machine's own clock. */

/** Looks every so often whether it is over; false when it is not within the time. */
export const settling = async (
  over: () => boolean,
  withinMs: number,
  everyMs: number
): Promise<boolean> => {
  const endMs = performance.now() + withinMs
  while (!over()) {
    if (performance.now() >= endMs) return false
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
  return true
}
