/**
 * Every answer of the service that a browser could load, from its OpenAPI document: each resource
 * in each of its types, the problems of each, and the pages of refused forms.
 */
import type { Shown } from "./deposits.ts"
import type { Marks } from "./marks.ts"
import type { Target } from "./servers.ts"

/** The parts of an OpenAPI document that this reads. */
interface Operation {
  readonly responses: Readonly<Record<string, Response>>
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
}

interface Response {
  readonly $ref?: string
  readonly content?: Readonly<Record<string, unknown>>
}

interface Schema {
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, unknown>>
}

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly responses: Readonly<Record<string, Response>>
    readonly schemas: Readonly<Record<string, Schema>>
  }
}

/** A target, and what its answer must have. */
export interface Representation extends Target {
  /** The type; undefined where the publisher chose it, or where it follows from the outcome. */
  readonly type: string | undefined
  /** Whether the service made it; else its publisher did. */
  readonly isOwn: boolean
}

/** Actors that failed are shown here, and no client can make one fail. */
const withoutDeposit: ReadonlyArray<string> = ["/cluster/quarantine/{kind}/{id}"]

const formType = "application/x-www-form-urlencoded"

const typesOf = ({ components }: OpenApi, response: Response): ReadonlyArray<string> => {
  const { content = {} } = response.$ref === undefined
    ? response
    : components.responses[response.$ref.split("/").at(-1) ?? ""] ?? {}
  return Object.keys(content)
}

/** The paths of a resource; throws for a resource with a parameter that no deposit is shown at. */
const pathsOf = (pattern: string, shown: Shown): ReadonlyArray<string> => {
  const paths = shown.get(pattern)
  if (paths !== undefined) return paths
  if (!pattern.includes("{")) return [pattern]
  if (withoutDeposit.includes(pattern)) return []
  throw new Error(
    `no deposit is shown at ${pattern}: add one to test/security/browsers/deposits.ts`
  )
}

const getsOf = ({ paths }: OpenApi) =>
  Object.entries(paths).flatMap(([pattern, { get }]) =>
    get === undefined ? [] : [{ pattern, operation: get }]
  )

/**
 * Each resource at each of its paths in each of its types. If `isShort`, only at the last of its
 * paths, but all content.
 */
export const resourcesOf = (
  document: OpenApi,
  shown: Shown,
  isShort = false
): ReadonlyArray<Representation> =>
  getsOf(document).flatMap(({ operation, pattern }) => {
    const types = Object.entries(operation.responses)
      .flatMap(([status, response]) => status === "200" ? typesOf(document, response) : [])
    // The type of content is its publisher's.
    const wanted = types.includes("*/*") || types.length === 0 ? [undefined] : types
    const paths = pathsOf(pattern, shown)
    return (isShort && wanted[0] !== undefined ? paths.slice(-1) : paths).flatMap((path) =>
      wanted.map((type): Representation => ({
        label: `GET ${pattern} as ${type ?? "it is"}`,
        method: "GET",
        path,
        headers: type === undefined ? {} : { accept: type },
        type,
        isOwn: !types.includes("*/*")
      }))
    )
  })

const hostileIn = (marks: Marks, label: string, charsMax: number): string =>
  encodeURIComponent(marks.of(label).text(charsMax))

/** The longest hostile part of a path or query: encoded it is about twice as long. */
const partChars = 400

/**
 * A problem of each resource, which names what was wrong with the request: as a page, and for one
 * of them in each type, as all have the same renderer.
 */
export const problemsOf = (document: OpenApi, marks: Marks): ReadonlyArray<Representation> =>
  getsOf(document).flatMap(({ operation, pattern }, at) => {
    const types = at > 0 ? ["text/html"] : new Set(
      Object.entries(operation.responses)
        .flatMap(([status, response]) => status >= "400" ? typesOf(document, response) : [])
    )
    const part = () => hostileIn(marks, `a path or query of ${pattern}`, partChars)
    const path = pattern.replaceAll(/\{\w+\}/g, part)
    return [...types].map((type): Representation => ({
      label: `a problem of GET ${pattern} as ${type}`,
      method: "GET",
      path: `${path}?limit=${part()}&format=${part()}`,
      headers: { accept: type },
      // Some have nothing to say against any request.
      type: undefined,
      isOwn: true
    }))
  })

const fieldsOf = ({ components }: OpenApi, schema: Schema): ReadonlyArray<string> => {
  const { properties = {} } = schema.$ref === undefined
    ? schema
    : components.schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {}
  return Object.keys(properties)
}

/** What a page shows when its form is sent with hostile texts in all fields. */
export const formsOf = (
  document: OpenApi,
  shown: Shown,
  marks: Marks
): ReadonlyArray<Representation> =>
  Object.entries(document.paths).flatMap(([pattern, { post }]) => {
    const form = post?.requestBody?.content[formType]
    if (form === undefined) return []
    const [path = pattern.replaceAll(/\{\w+\}/g, "x")] = shown.get(pattern) ?? []
    const text = (name: string) => marks.of(`${name} of the form of ${pattern}`).text(2_000)
    const body = new URLSearchParams(
      fieldsOf(document, form.schema).map((name): [string, string] => [name, text(name)])
    )
    return [{
      label: `the form of POST ${pattern}`,
      method: "POST",
      path: path.split("?")[0] ?? "",
      headers: { accept: "text/html", "content-type": formType, "sec-fetch-site": "same-origin" },
      body: body.toString(),
      type: undefined,
      isOwn: true
    }]
  })
