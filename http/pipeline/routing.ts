/**
 * A table of path patterns x methods, compiled to a trie. Patterns are `/mailboxes/{mailbox}`: a
 * segment is literal or one parameter, and a literal wins over a parameter.
 */
import { LRUCache } from "lru-cache"
import { knownPathsMax, pathCharsMax, pathSegmentsMax } from "../limits.ts"

/** One row: a pattern and its handlers by upper-case method. */
export interface Route<H> {
  readonly pattern: string
  readonly methods: Readonly<Record<string, H>>
  /** `Accept-Post` of its answers to OPTIONS, where clients look for it. */
  readonly acceptPost?: string
  /** The methods whose answers are guarded: see `OperationGroup`. */
  readonly guarded?: "all" | ReadonlyArray<string>
}

/**
 * The decoded parameters of a matched path. `get` returns the part of the segment before `~`. All
 * requests of a known path have the same object, so that what follows from it can be kept with it.
 */
export interface Parameters {
  has(name: string): boolean
  get(name: string): string
  /** The secret part of a segment `name~secret`; undefined without `~`. */
  secret(name: string): string | undefined
}

/** The match of a method and path; HEAD uses the handler of GET if it has none. */
export type Match<H> =
  | {
    readonly _tag: "Found"
    readonly handler: H
    readonly parameters: Parameters
    readonly pattern: string
    readonly allow: string
  }
  | {
    readonly _tag: "Options"
    readonly allow: string
    readonly pattern: string
    readonly acceptPost: string | undefined
  }
  | { readonly _tag: "MethodNotAllowed"; readonly allow: string; readonly pattern: string }
  | { readonly _tag: "NotFound" }
  | { readonly _tag: "Malformed"; readonly detail: string }

interface Leaf<H> {
  readonly pattern: string
  readonly handlers: ReadonlyMap<string, H>
  readonly allow: string
  readonly acceptPost: string | undefined
  readonly names: ReadonlyArray<string>
}

interface Node<H> {
  readonly literals: Map<string, Node<H>>
  parameter: Node<H> | undefined
  leaf: Leaf<H> | undefined
}

const node = <H>(): Node<H> => ({ literals: new Map(), parameter: undefined, leaf: undefined })

const parameterPattern = /^\{([a-z][A-Za-z0-9]*)\}$/

const methodOrder = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

const allowOf = (methods: ReadonlyArray<string>): string => {
  const all = new Set([...methods, "OPTIONS"])
  if (all.has("GET")) all.add("HEAD")
  return methodOrder.filter((method) => all.has(method)).join(", ")
}

const insert = <H>(root: Node<H>, route: Route<H>): void => {
  const names: Array<string> = []
  let current = root
  for (const segment of route.pattern.slice(1).split("/")) {
    const name = parameterPattern.exec(segment)?.[1]
    if (name !== undefined) {
      names.push(name)
      current.parameter ??= node()
      current = current.parameter
      continue
    }
    if (!/^[A-Za-z0-9._-]*$/.test(segment)) throw new Error(`bad pattern ${route.pattern}`)
    const next = current.literals.get(segment) ?? node<H>()
    current.literals.set(segment, next)
    current = next
  }
  if (current.leaf !== undefined) throw new Error(`pattern ${route.pattern} is declared twice`)
  current.leaf = {
    pattern: route.pattern,
    handlers: new Map(Object.entries(route.methods)),
    allow: allowOf(Object.keys(route.methods)),
    acceptPost: route.acceptPost,
    names
  }
}

class PathParameters implements Parameters {
  private readonly names: ReadonlyArray<string>
  private readonly values: ReadonlyArray<string>

  constructor(names: ReadonlyArray<string>, values: ReadonlyArray<string>) {
    this.names = names
    this.values = values
  }

  private segment(name: string): string {
    const value = this.values[this.names.indexOf(name)]
    if (value === undefined) throw new Error(`the pattern has no parameter ${name}`)
    return value
  }

  has(name: string): boolean {
    return this.names.includes(name)
  }

  get(name: string): string {
    const segment = this.segment(name)
    const tilde = segment.indexOf("~")
    return tilde === -1 ? segment : segment.slice(0, tilde)
  }

  secret(name: string): string | undefined {
    const segment = this.segment(name)
    const tilde = segment.indexOf("~")
    return tilde === -1 ? undefined : segment.slice(tilde + 1)
  }
}

/** Whether a segment is `.` or `..`, also with a secret after it. */
const isDots = (segment: string): boolean => /^\.\.?(~|$)/.test(segment)

const acceptedPath = /^\/[A-Za-z0-9\-._~!$&'()*+,;=:@%/]*$/

/**
 * The percent-decoded segment. Undefined if it is invalid, a dot segment, or decodes to a slash, a
 * backslash or a control character: the path of a resource has only one spelling.
 */
const decodeSegment = (segment: string): string | undefined => {
  if (isDots(segment)) return undefined
  if (!segment.includes("%")) return segment
  try {
    const decoded = decodeURIComponent(segment)
    // eslint-disable-next-line no-control-regex
    return /[\u0000-\u001f\u007f/\\]/.test(decoded) || isDots(decoded)
      ? undefined
      : decoded
  } catch {
    return undefined
  }
}

const badPath: Match<never> = { _tag: "Malformed", detail: "the path is malformed" }

const notFound: Match<never> = { _tag: "NotFound" }

/** The resource of a path, and its parameters. */
interface Place<H> {
  readonly leaf: Leaf<H>
  readonly parameters: Parameters
}

const walk = <H>(
  current: Node<H>,
  segments: ReadonlyArray<string>,
  index: number,
  values: Array<string>
): Leaf<H> | undefined => {
  const segment = segments[index]
  if (segment === undefined) return current.leaf
  const literal = current.literals.get(segment)
  const found = literal === undefined ? undefined : walk(literal, segments, index + 1, values)
  if (found !== undefined || current.parameter === undefined || segment === "") return found
  values.push(segment)
  const leaf = walk(current.parameter, segments, index + 1, values)
  if (leaf === undefined) values.pop()
  return leaf
}

/** Finds the handler for an upper-case method and the raw path of a request. */
export type Matcher<H> = (method: string, path: string) => Match<H>

const answer = <H>({ leaf, parameters }: Place<H>, method: string): Match<H> => {
  const { acceptPost, allow, pattern } = leaf
  const handler = leaf.handlers.get(method) ??
    (method === "HEAD" ? leaf.handlers.get("GET") : undefined)
  if (handler !== undefined) return { _tag: "Found", handler, parameters, pattern, allow }
  if (method === "OPTIONS") return { _tag: "Options", allow, pattern, acceptPost }
  return { _tag: "MethodNotAllowed", allow, pattern }
}

/** The place of a path, or why there is none. */
const placeOf = <H>(root: Node<H>, path: string): Place<H> | Match<never> => {
  if (path.length > pathCharsMax || !acceptedPath.test(path)) return badPath
  const segments = path.slice(1).split("/")
  if (segments.length > pathSegmentsMax) return notFound
  if (path.includes("%") || path.includes("/.")) {
    for (let index = 0; index < segments.length; index += 1) {
      const decoded = decodeSegment(segments[index] ?? "")
      if (decoded === undefined) return badPath
      segments[index] = decoded
    }
  }
  const values: Array<string> = []
  const leaf = walk(root, segments, 0, values)
  return leaf === undefined
    ? notFound
    : { leaf, parameters: new PathParameters(leaf.names, values) }
}

/** Compiles the table; throws (a defect) for an invalid or repeated pattern. */
export const compileRoutes = <H>(routes: ReadonlyArray<Route<H>>): Matcher<H> => {
  const root = node<H>()
  for (const route of routes) insert(root, route)
  const known = new LRUCache<string, Place<H>>({ max: knownPathsMax })
  return (method, path) => {
    const before = known.get(path)
    if (before !== undefined) return answer(before, method)
    const place = placeOf(root, path)
    if ("_tag" in place) return place
    known.set(path, place)
    return answer(place, method)
  }
}
