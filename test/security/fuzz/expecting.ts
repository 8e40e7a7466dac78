/** How a target says that something is not as it must be. */

/** A property that does not hold; not one of the service's own failures. */
export class Broken extends Error {
  override readonly name = "Broken"
}

/** Throws unless it holds. */
export const must = (holds: boolean, what: string): void => {
  if (!holds) throw new Broken(what)
}

/** Throws unless both are the same, as JSON says them. */
export const mustEqual = (one: unknown, other: unknown, what: string): void => {
  const [left, right] = [one, other].map((value) => JSON.stringify(value))
  must(left === right, `${what}: ${left?.slice(0, 120)} and ${right?.slice(0, 120)}`)
}

/** The input as the bytes that came. */
export const bytesOf = (input: string): Buffer => Buffer.from(input, "latin1")
