/** Derives problems, header fields and security of an operation from its method, path and body. */
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

const commonProblems: ReadonlyArray<ProblemSlug> = [
  "internal",
  "overloaded",
  "quarantined",
  // By the operator's rate limits.
  "too-many-requests",
  "storage-unavailable"
]

/** The problems of wrong credentials, wherever the service checks them. */
const credentials: ReadonlyArray<ProblemSlug> = [
  "unauthenticated",
  "too-many-requests",
  "issuer-unavailable"
]

const problemsOfNeeds: Readonly<Record<CredentialNeeds, ReadonlyArray<ProblemSlug>>> = {
  anyone: credentials,
  account: credentials,
  role: [...credentials, "forbidden"],
  reader: [...credentials, "forbidden", "gone", "not-found"],
  message: [...credentials, "gone", "not-found"]
}

const problemsOfBody: Readonly<Record<RequestBodyDescription["kind"], ReadonlyArray<ProblemSlug>>> =
  {
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
export const problemsOf = (routed: RoutedOperation): ReadonlySet<ProblemSlug> => {
  const { method, operation, pattern } = routed
  const { body, needs, problems = [], query } = operation
  const slugs = new Set<ProblemSlug>([...commonProblems, ...problems])
  const add = (...more: ReadonlyArray<ProblemSlug>) => more.forEach((slug) => slugs.add(slug))
  if (needs !== undefined) add(...problemsOfNeeds[needs])
  if (body !== undefined) add(...problemsOfBody[body.kind])
  if (query !== undefined) add("malformed")
  if (parametersOf(pattern).length > 0) add("not-found")
  if (isView(routed)) add("not-acceptable", "precondition-failed")
  if (isConditional(routed)) add("precondition-failed")
  // CSRF protection may reject a request that a page of another site caused.
  if (method !== "GET") add("forbidden", "storage-full")
  if (method === "POST") add("malformed", "conflict", "idempotency-key-reuse")
  return slugs
}

/** Every header parameter of the operation. */
export const headersOf = (routed: RoutedOperation): ReadonlySet<RequestHeader> => {
  const names = new Set<RequestHeader>(routed.operation.headers)
  if (routed.method === "POST") names.add("Idempotency-Key")
  if (isView(routed)) names.add("If-Match").add("If-None-Match")
  if (isConditional(routed)) names.add("If-Match").add("If-None-Match").add("If-Unmodified-Since")
  return names
}

/** The security requirements, any of which is enough (OpenAPI §4.8.30). */
export const securityOf: Readonly<
  Record<CredentialNeeds, ReadonlyArray<Readonly<Record<string, ReadonlyArray<string>>>>>
> = {
  anyone: [{}, { basic: [] }, { bearer: [] }],
  account: [{ basic: [] }, { bearer: [] }],
  role: [{ basic: [] }, { bearer: [] }],
  // `{}`: the secret in the path is enough.
  reader: [{ basic: [] }, { bearer: [] }, {}],
  message: [{}, { messagePassword: [] }, { basic: [] }, { bearer: [] }]
}
