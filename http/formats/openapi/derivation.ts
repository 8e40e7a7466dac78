/** Derives problems, header fields and security of an operation from its method, path and body. */
import type { ProblemSlug } from "../problem-types.ts"
import { type Format, formatParameter, formatsOf } from "../representation-uris.ts"
import { type CredentialNeeds, emptyResponse, type Method, type Operation, type OperationGroup,
  type Parameter, type RequestBodyDescription, type RequestHeader,
  type ResponseDescription } from "./operation.ts"
import { oneOf } from "./schema.ts"

/** An operation with its method, its path and the tag of its group. */
export interface RoutedOperation<O extends Operation = Operation> {
  readonly method: Method
  readonly pattern: string
  readonly tag: string
  readonly operation: O
}

const isMethod = (method: string): method is Method =>
  method === "GET" || method === "POST" || method === "PUT" || method === "DELETE"

/** The operations of a group; throws (a defect) for a key without a known method. */
export const operationsOf = <O extends Operation>(
  { operations, tag }: OperationGroup<O>
): ReadonlyArray<RoutedOperation<O>> =>
  Object.entries(operations).map(([key, operation]) => {
    const [method = "", pattern = ""] = key.split(" ")
    if (!isMethod(method)) throw new Error(`the method of the operation ${key} is unknown`)
    const { needs, scopes = [] } = operation
    if ((needs === undefined) !== (scopes.length === 0)) {
      throw new Error(`the operation ${key} needs both credentials and scopes, or neither`)
    }
    return { method, pattern, tag, operation }
  })

/** The answers of an operation that describes none. */
const defaultResponses: Readonly<Record<number, ResponseDescription>> = {
  204: emptyResponse("Removed")
}

/** The answers of an operation by their status; a 201 has the URI of the new resource. */
export const responsesOf = (
  { responses = defaultResponses }: Operation
): Readonly<Record<number, ResponseDescription>> => {
  const created = responses[201]
  if (created === undefined) return responses
  return { ...responses, 201: { ...created, headers: ["Location", ...created.headers ?? []] } }
}

/** The names of a pattern's parameters. */
export const parametersOf = (pattern: string): ReadonlyArray<string> =>
  [...pattern.matchAll(/\{([A-Za-z0-9]+)\}/g)].map(([, name = ""]) => name)

/** Whether the operation is a GET whose answer is negotiated and conditional. */
export const isView = ({ method, operation }: RoutedOperation): boolean =>
  method === "GET" && Object.values(responsesOf(operation)).some((answer) => answer.isView === true)

/** The formats of a GET whose answer is negotiated; none for others. */
export const formatsOfOperation = (routed: RoutedOperation): ReadonlyArray<Format> =>
  isView(routed) ? formatsOf(Object.keys(responsesOf(routed.operation)[200]?.content ?? {})) : []

/** The query parameters of the operation, with the format of its answer. */
export const queryOf = (routed: RoutedOperation): Readonly<Record<string, Parameter>> => {
  const { query = {} } = routed.operation
  const formats = formatsOfOperation(routed)
  return formats.length === 0 ? query : {
    ...query,
    [formatParameter]: {
      description: "The representation, in place of Accept; each has a URI of its own.",
      schema: oneOf(...formats)
    }
  }
}

/** Whether the operation is a change that honors preconditions. */
const isConditional = ({ method, operation }: RoutedOperation): boolean =>
  (method === "PUT" || method === "DELETE") && operation.isUnconditional !== true

/** Whether an Idempotency-Key has a meaning: for every POST, and where the operation names it. */
const isKeyed = ({ method, operation }: RoutedOperation): boolean =>
  method === "POST" || operation.headers?.includes("Idempotency-Key") === true

/** Whether the operation may store something for a client without an account. */
export const storesForAnyone = ({ method, operation }: RoutedOperation): boolean =>
  (method === "POST" || method === "PUT") && operation.isPassing !== true &&
  operation.needs !== "account" && operation.needs !== "role"

/** The problems of a request before it reaches the resource. */
export const earlyProblems: ReadonlyArray<ProblemSlug> = [
  "malformed",
  "too-many-requests",
  "header-fields-too-large",
  "expectation-failed",
  "not-implemented"
]

const commonProblems: ReadonlyArray<ProblemSlug> = [
  ...earlyProblems,
  "internal",
  "overloaded",
  "quarantined",
  "storage-unavailable"
]

/** The problems of wrong credentials, wherever the service checks them. */
const credentialProblems: ReadonlyArray<ProblemSlug> = [
  "unauthenticated",
  "too-many-requests",
  "issuer-unavailable"
]

const problemsOfNeeds: Readonly<Record<CredentialNeeds, ReadonlyArray<ProblemSlug>>> = {
  anyone: credentialProblems,
  account: credentialProblems,
  role: [...credentialProblems, "forbidden"],
  reader: [...credentialProblems, "forbidden"],
  message: credentialProblems
}

const problemsOfBody: Readonly<Record<RequestBodyDescription["kind"], ReadonlyArray<ProblemSlug>>> =
  {
    document: [
      "document-too-large",
      "payload-too-large",
      "request-timeout",
      "unprocessable",
      "unsupported-media-type"
    ],
    stream: ["payload-too-large", "request-timeout", "unsupported-media-type"],
    none: ["unsupported-media-type"]
  }

/** Every kind of problem that the operation may answer. */
export const problemsOf = (routed: RoutedOperation): ReadonlySet<ProblemSlug> => {
  const { method, operation, pattern } = routed
  const { body, needs, problems = [] } = operation
  const slugs = new Set<ProblemSlug>([...commonProblems, ...problems])
  const add = (...more: ReadonlyArray<ProblemSlug>) => more.forEach((slug) => slugs.add(slug))
  if (needs !== undefined) add(...problemsOfNeeds[needs])
  if (needs !== undefined && needs !== "message") add("insufficient-scope")
  if (body !== undefined) add(...problemsOfBody[body.kind])
  if (parametersOf(pattern).length > 0) {
    add("not-found")
    if (operation.isNeverGone !== true) add("gone")
  }
  if (isView(routed)) add("not-acceptable", "precondition-failed")
  if (isConditional(routed)) add("precondition-failed")
  // CSRF protection may reject a request that a page of another site caused.
  if (method !== "GET") add("forbidden", "storage-full")
  if (storesForAnyone(routed)) add("disk-low")
  // Another request with the same Idempotency-Key may be running.
  if (method === "POST") add("conflict")
  // The keys of a network count for its day.
  if (method === "POST" && storesForAnyone(routed)) add("quota-exceeded")
  if (isKeyed(routed)) add("idempotency-key-reuse")
  return slugs
}

/** Every header parameter of the operation. */
export const headersOf = (routed: RoutedOperation): ReadonlySet<RequestHeader> => {
  const names = new Set<RequestHeader>(routed.operation.headers)
  if (isKeyed(routed)) names.add("Idempotency-Key")
  if (isView(routed)) names.add("If-Match").add("If-None-Match")
  if (isConditional(routed)) names.add("If-Match").add("If-None-Match").add("If-Unmodified-Since")
  return names
}

/** What names an account. */
const accountSchemes = [{ basic: [] }, { bearer: [] }, { browser: [] }]

/** The security requirements, any of which is enough (OpenAPI §4.8.30). */
export const securityOf: Readonly<
  Record<CredentialNeeds, ReadonlyArray<Readonly<Record<string, ReadonlyArray<string>>>>>
> = {
  anyone: [{}, ...accountSchemes],
  account: accountSchemes,
  role: accountSchemes,
  // `{}`: the secret in the path is enough.
  reader: [...accountSchemes, {}],
  message: [{}, { messagePassword: [] }, ...accountSchemes]
}

const credentialTexts: Readonly<Record<CredentialNeeds, string>> = {
  anyone: "Needs no account; an account may have more rights.",
  account: "Needs an account.",
  role: "Needs an account with the right to it, by its role or as the owner.",
  reader:
    "Needs the right to read the mailbox: the owner's account, the password of the mailbox by "
    + "HTTP Basic, or the secret part of its URI.",
  message: "Needs the password of the message, if it has one."
}

/** What the operation does beyond its summary, with the credentials and fields that follow. */
export const descriptionOf = (routed: RoutedOperation): string => {
  const { description, needs, scopes = [] } = routed.operation
  return [
    ...description === undefined ? [] : [description],
    needs === undefined ? "Needs no credentials." : credentialTexts[needs],
    ...scopes.length === 0
      ? []
      : [`A token with scopes needs ${scopes.map((scope) => `\`${scope}\``).join(" or ")}.`],
    ...isView(routed) ? ["Accept chooses the type of the answer."] : [],
    ...isConditional(routed) ? ["Honors preconditions (RFC 9110 §13)."] : [],
    ...isKeyed(routed) ? ["A repetition with the same Idempotency-Key changes nothing."] : []
  ].join(" ")
}
