/** What follows for an operation from its method, its path, its body and what it needs. */
import type { ProblemSlug } from "../problem-types.ts"
import type { CredentialNeeds, Method, Operation, RequestBodyDescription,
  RequestHeader } from "./operation.ts"

/** An operation at its place in the routing table. */
export interface RoutedOperation {
  readonly method: Method
  readonly pattern: string
  readonly operation: Operation
}

/** The names of a pattern's parameters. */
export const parametersOf = (pattern: string): ReadonlyArray<string> =>
  [...pattern.matchAll(/\{([A-Za-z0-9]+)\}/g)].map(([, name = ""]) => name)

/** Whether its GET is negotiated and conditional. */
export const isView = ({ method, operation }: RoutedOperation): boolean =>
  method === "GET" && Object.values(operation.responses).some((answer) => answer.isView === true)

const isConditional = ({ method, operation }: RoutedOperation): boolean =>
  (method === "PUT" || method === "DELETE") && operation.isUnconditional !== true

const always: ReadonlyArray<ProblemSlug> = [
  "internal",
  "overloaded",
  "quarantined",
  // By the operator's limits on rates.
  "too-many-requests",
  "storage-unavailable"
]

/** What wrong credentials get wherever they are looked at. */
const credentials: ReadonlyArray<ProblemSlug> = [
  "unauthenticated",
  "too-many-requests",
  "issuer-unavailable"
]

const needed: Readonly<Record<CredentialNeeds, ReadonlyArray<ProblemSlug>>> = {
  anyone: credentials,
  account: credentials,
  role: [...credentials, "forbidden"],
  reader: [...credentials, "forbidden", "gone", "not-found"],
  message: [...credentials, "gone", "not-found"]
}

const ofBody: Readonly<Record<RequestBodyDescription["kind"], ReadonlyArray<ProblemSlug>>> = {
  document: [
    "malformed",
    "document-too-large",
    "payload-too-large",
    "request-timeout",
    "unprocessable",
    "unsupported-media-type"
  ],
  stream: ["malformed", "payload-too-large", "request-timeout", "unsupported-media-type"],
  empty: ["unsupported-media-type"]
}

/** Every kind of problem that the operation may answer. */
export const problemsOf = (placed: RoutedOperation): ReadonlySet<ProblemSlug> => {
  const { method, operation, pattern } = placed
  const { body, needs, problems = [], query } = operation
  const slugs = new Set<ProblemSlug>([...always, ...problems])
  const add = (...more: ReadonlyArray<ProblemSlug>) => more.forEach((slug) => slugs.add(slug))
  if (needs !== undefined) add(...needed[needs])
  if (body !== undefined) add(...ofBody[body.kind])
  if (query !== undefined) add("malformed")
  if (parametersOf(pattern).length > 0) add("not-found")
  if (isView(placed)) add("not-acceptable", "precondition-failed")
  if (isConditional(placed)) add("precondition-failed")
  // A page of another site may have made the browser send it.
  if (method !== "GET") add("forbidden", "storage-full")
  if (method === "POST") add("malformed", "conflict", "idempotency-key-reuse")
  return slugs
}

/** Every header parameter of the operation. */
export const headersOf = (placed: RoutedOperation): ReadonlySet<RequestHeader> => {
  const names = new Set<RequestHeader>(placed.operation.headers)
  if (placed.method === "POST") names.add("Idempotency-Key")
  if (isView(placed)) names.add("If-Match").add("If-None-Match")
  if (isConditional(placed)) names.add("If-Match").add("If-None-Match").add("If-Unmodified-Since")
  return names
}

/** The security requirements, any of which is enough (OpenAPI §4.8.30). */
export const securityOf: Readonly<
  Record<CredentialNeeds, ReadonlyArray<Readonly<Record<string, ReadonlyArray<string>>>>>
> = {
  anyone: [{}, { basic: [] }, { bearer: [] }],
  account: [{ basic: [] }, { bearer: [] }],
  role: [{ basic: [] }, { bearer: [] }],
  // Nothing but the path where that is a URI with a secret.
  reader: [{ basic: [] }, { bearer: [] }, {}],
  message: [{}, { messagePassword: [] }, { basic: [] }, { bearer: [] }]
}
