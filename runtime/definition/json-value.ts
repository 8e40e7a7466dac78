/** Whether a value is the same after it has travelled to another node, as JSON. */

/** Levels of arrays and objects in a reply, at most. */
const depthMax = 200

const nameOf = (value: unknown): string =>
  typeof value === "object" && value !== null
    ? `an object of the class ${Object.getPrototypeOf(value)?.constructor?.name ?? "?"}`
    : `${typeof value} ${String(value)}`

const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** The part of a composite value that is no JSON value, and where it is. */
const faultWithin = (value: object, path: string, depth: number): string | undefined => {
  if (depth === depthMax) return `more than ${depthMax} levels at ${path.slice(0, 80)}…`
  if (Array.isArray(value)) {
    for (const [index, one] of value.entries()) {
      const fault = one === undefined
        ? `undefined at ${path}[${index}]`
        : jsonFault(one, `${path}[${index}]`, depth + 1)
      if (fault !== undefined) return fault
    }
    return undefined
  }
  if (!isPlain(value)) return `${nameOf(value)} at ${path}`
  for (const [name, one] of Object.entries(value)) {
    const fault = jsonFault(one, `${path}.${name}`, depth + 1)
    if (fault !== undefined) return fault
  }
  return undefined
}

/**
 * What in a value is not JSON, such as "bigint 1 at reply.count"; undefined if all of it is. A
 * member that is undefined is as one that is missing.
 */
export const jsonFault = (value: unknown, path: string, depth = 0): string | undefined => {
  switch (typeof value) {
    case "string":
    case "boolean":
    case "undefined":
      return undefined
    case "number":
      return Number.isFinite(value) ? undefined : `${nameOf(value)} at ${path}`
    case "object":
      return value === null ? undefined : faultWithin(value, path, depth)
    default:
      return `${nameOf(value)} at ${path}`
  }
}
