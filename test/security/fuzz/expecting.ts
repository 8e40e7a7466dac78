/** Assertions of fuzz targets. */

/** A violated property, as opposed to a failure of the service. */
export class Broken extends Error {
  override readonly name = "Broken"
}

/** Throws unless it holds. */
export const must = (holds: boolean, what: string): void => {
  if (!holds) throw new Broken(what)
}

/** Throws unless both have the same JSON text. */
export const mustEqual = (one: unknown, other: unknown, what: string): void => {
  const [left, right] = [one, other].map((value) => JSON.stringify(value))
  must(left === right, `${what}: ${left?.slice(0, 120)} and ${right?.slice(0, 120)}`)
}

/** The bytes of the input. */
export const bytesOf = (input: string): Buffer => Buffer.from(input, "latin1")
